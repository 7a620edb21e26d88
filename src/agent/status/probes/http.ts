/** HTTP probes with the kubelet's rules: certificates are not verified, redirects on the same host are followed. */
import { Agent, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { type TLSSocket, connect as tlsConnect } from "node:tls";
import { MeshError } from "#lib/mesh-error.ts";
import type { Answer, IncomingRequest } from "../answer.ts";
import type { HttpProbe } from "./parse.ts";
import type { ProbeInput, ProbeTarget } from "./run.ts";

const MAX_REDIRECTS = 10;
const MAX_BODY_BYTES = 10 * 1024;

export interface ProbeResponse {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: AsyncIterable<Buffer>;
  readonly close: () => void;
}

export async function runHttpProbe(probe: HttpProbe, { request, target, signal }: ProbeInput): Promise<Answer> {
  const { connection: _, ...given } = request.headers;
  const own = {
    host: hostHeader(request, probe, target),
    ...(target.kept === undefined ? { connection: "close" } : {}),
  };
  const headers = { ...given, ...own };
  let path = probe.path;
  for (let redirects = 0; redirects < MAX_REDIRECTS; redirects++) {
    const response = await sendProbe({ ...probe, path, headers, target, signal });
    try {
      if (response.status < 300 || response.status >= 400)
        return { status: response.status, body: await readSome(response.body) };
      const next = sameHost(response.location, probe, target);
      // A redirect to elsewhere is a sign of life, and not ours to follow.
      if (next === undefined) return { status: 200 };
      path = next;
    } finally {
      response.close();
    }
  }
  throw new MeshError("HTTP_FAILED", `stopped after ${MAX_REDIRECTS} redirects`);
}

/** The application is told the host that the kubelet asked, with its own port in place of ours. */
function hostHeader({ headers }: IncomingRequest, { port }: HttpProbe, { statusPort, host }: ProbeTarget): string {
  const given = headers.host?.[0] ?? `${host}:${port}`;
  return given.replace(new RegExp(`:${statusPort}$`), `:${port}`);
}

function sameHost(
  location: string | undefined,
  { port, https, path }: HttpProbe,
  { host }: ProbeTarget,
): string | undefined {
  const literal = host.includes(":") ? `[${host}]` : host;
  const base = new URL(path, `${https ? "https" : "http"}://${literal}:${port}`);
  if (location === undefined || !URL.canParse(location, base.href)) return undefined;
  const next = new URL(location, base);
  return next.hostname === base.hostname ? next.pathname + next.search : undefined;
}

export interface ProbeRequest extends HttpProbe {
  readonly headers: OutgoingHttpHeaders & { readonly host: string };
  readonly target: ProbeTarget;
  readonly signal: AbortSignal;
}

async function sendProbe(probe: ProbeRequest): Promise<ProbeResponse> {
  const { target, port, signal, https } = probe;
  if (target.kept !== undefined) return overHttp1(probe, target.kept.agentFor(probe));
  const socket = await target.connect({ host: target.host, port }, signal);
  if (!https) return overHttp1(probe, socket);
  const secure = await overTls(socket, target.http2 ? ["h2", "http/1.1"] : ["http/1.1"]);
  if (secure.alpnProtocol !== "h2") return overHttp1(probe, secure);
  const { overHttp2 } = await import("./http2.ts");
  return overHttp2(probe, secure);
}

/** The connection below ends with the probe's time, and this with it. */
export function overTls(socket: Socket, ALPNProtocols: string[]): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const secure = tlsConnect({ socket, rejectUnauthorized: false, ALPNProtocols }, () => resolve(secure));
    secure.on("error", reject);
    socket.on("error", reject);
  });
}

function overHttp1(probe: ProbeRequest, through: Socket | Agent): Promise<ProbeResponse> {
  const { port, path, headers, signal, target } = probe;
  const connection = through instanceof Agent ? { agent: through } : { createConnection: () => through };
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: target.host, port, path, headers, ...connection });
    const cut = () => {
      request.destroy(signal.reason);
      reject(signal.reason); // A request without a connection yet says nothing.
    };
    signal.addEventListener("abort", cut, { once: true });
    request.on("close", () => signal.removeEventListener("abort", cut));
    request.on("error", (error) => {
      // The application closed a connection that was kept, as it may: that says nothing of its health.
      if (request.reusedSocket && !signal.aborted) resolve(overHttp1(probe, through));
      else reject(error);
    });
    request.on("response", (response: IncomingMessage) => {
      resolve({
        status: response.statusCode ?? 0,
        location: response.headers.location,
        body: response,
        close: () => response.destroy(),
      });
    });
    request.end();
  });
}

/** At most as much as the kubelet keeps of it. */
async function readSome(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= MAX_BODY_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES).toString();
}
