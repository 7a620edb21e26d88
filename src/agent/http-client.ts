/** Requests to Envoy's admin port, to applications and to scrape targets: all of them near, all of them small. */
import { type IncomingMessage, request } from "node:http";
import { MeshError } from "#lib/mesh-error.ts";

export interface HttpRequest {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
  readonly timeoutMs: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** The answer to a request, whatever its status. */
export async function fetchText(wanted: HttpRequest): Promise<HttpAnswer> {
  const response = await send(wanted);
  response.setEncoding("utf8");
  let body = "";
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

/** Sends a request; the time limit holds for the answer as a whole. No connection is kept. */
export function send({
  host,
  port,
  path,
  method = "GET",
  headers = {},
  body,
  timeoutMs,
}: HttpRequest): Promise<IncomingMessage> {
  const where = `${method} http://${host.includes(":") ? `[${host}]` : host}:${port}${path}`;
  return new Promise((resolve, reject) => {
    const outgoing = request({ host, port, path, method, headers: { ...headers }, agent: false });
    const timer = setTimeout(() => {
      outgoing.destroy(new MeshError("HTTP_FAILED", `${where}: no answer in ${timeoutMs} ms`));
    }, timeoutMs);
    outgoing.on("response", resolve);
    outgoing.on("error", (cause) => {
      reject(cause instanceof MeshError ? cause : new MeshError("HTTP_FAILED", where, { cause }));
    });
    outgoing.on("close", () => clearTimeout(timer));
    outgoing.end(body);
  });
}
