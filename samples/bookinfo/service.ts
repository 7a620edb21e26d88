/** What the four services of Bookinfo have in common: a small HTTP server, calls to each other, start and stop. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";

export interface Call {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
  /** Fields of a form that was posted. */
  readonly form: URLSearchParams;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Handler = (call: Call) => Answer | Promise<Answer>;

const MAX_FORM_BYTES = 10_000;

/** A server that is not listening yet. Every service answers `/health`. */
export function createService(handle: Handler): Server {
  // A proxy keeps connections: who ends one may do so at the moment at which the proxy uses it again.
  return createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_FORM_BYTES) response.writeHead(413).end(() => request.destroy());
      else chunks.push(chunk);
    });
    request.on("end", async () => {
      if (response.writableEnded) return;
      const url = URL.parse(request.url ?? "/", "http://service");
      const form = new URLSearchParams(Buffer.concat(chunks).toString());
      const { method = "GET", headers } = request;
      const answer = url === null ? MALFORMED : await answerTo(handle, { method, url, headers, form });
      response.writeHead(answer.status, answer.headers).end(answer.body);
    });
  });
}

async function answerTo(handle: Handler, call: Call): Promise<Answer> {
  if (call.url.pathname === "/health") return json({ status: "healthy" });
  try {
    return await handle(call);
  } catch (error) {
    console.error(error);
    return json({ error: "internal error" }, 500);
  }
}

export function json(value: unknown, status = 200): Answer {
  return { status, headers: { "content-type": "application/json" }, body: `${JSON.stringify(value)}\n` };
}

const MALFORMED = json({ error: "malformed path" }, 400);
export const NOT_FOUND = json({ error: "not found" }, 404);

/** The id in a path such as `/reviews/0`, or undefined. */
export function idIn(path: string, prefix: string): number | undefined {
  const rest = path.startsWith(prefix) ? path.slice(prefix.length) : "";
  return /^\d{1,9}$/.test(rest) ? Number(rest) : undefined;
}

/**
 * Headers that each service hands on: who is signed in, because routes depend on it, and what joins the calls of one
 * request to one trace. The mesh cannot do this, since only the application knows which call belongs to which request.
 */
const PROPAGATED = [
  ...["end-user", "user-agent", "cookie", "authorization"],
  ...["x-request-id", "traceparent", "tracestate", "b3", "x-cloud-trace-context", "grpc-trace-bin", "sw8"],
  ...["x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "x-b3-sampled", "x-b3-flags", "x-ot-span-context"],
];

export function propagated(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    PROPAGATED.flatMap((name) => {
      const value = headers[name];
      return value === undefined ? [] : [[name, String(value)]];
    }),
  );
}

export interface Request {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** The answer of another service, or undefined when it is late, broken or not there. */
export async function fetchJson<T>({ url, headers, timeoutMs }: Request): Promise<T | undefined> {
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(timeoutMs) });
    if (response.ok) return (await response.json()) as T;
    await response.body?.cancel();
    console.error(`${url}: status ${response.status}`);
  } catch (error) {
    console.error(`${url}: ${error instanceof Error ? error.message : error}`);
  }
  return undefined;
}

/** Listens on PORT until SIGTERM. */
export function serve(name: string, server: Server): void {
  const port = Number(process.env.PORT ?? "9080");
  server.listen(port, () => console.log(`${name} listens on ${port}`));
  process.once("SIGTERM", () => server.close(() => process.exit(0)).closeIdleConnections());
}
