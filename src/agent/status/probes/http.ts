/** HTTP probes with the kubelet's rules: certificates are not verified, redirects on the same host are followed. */
import { isUtf8 } from "node:buffer";
import { Agent, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { type TLSSocket, connect as tlsConnect } from "node:tls";
import { MAX_HEADER_BYTES } from "../../http-client.ts";
import { aimOf, followRedirects, type Redirecting } from "../../redirects.ts";
import type { Answer } from "../answer.ts";
import type { HttpProbe } from "./parse.ts";
import type { ProbeInput, ProbeTarget, ProbingRequest } from "./run.ts";

const MAX_BODY_BYTES = 10 * 1024;
const BINARY = "application/octet-stream";

export interface ProbeResponse extends Redirecting {
  readonly body: AsyncIterable<Buffer>;
}

export async function runHttpProbe(probe: HttpProbe, { request, target, signal }: ProbeInput): Promise<Answer> {
  // It is sent without the body that these speak of.
  const { connection: _, "content-length": __, "transfer-encoding": ___, ...given } = request.headers;
  const own = target.kept === undefined ? { connection: "close" } : {};
  const asked = hostHeader(request, probe, target);
  const literal = target.host.includes(":") ? `[${target.host}]` : target.host;
  const start = new URL(`${probe.https ? "https" : "http"}://${literal}:${probe.port}${probe.path}`);
  const response = await followRedirects(start, {
    ask: (redirect) => {
      const referer = redirect?.referer === undefined ? {} : { referer: redirect.referer };
      const host = redirect === undefined || redirect.sameName ? asked : redirect.url.host;
      const { https, port, path } = redirect === undefined ? probe : aimOf(redirect.url);
      return sendProbe({ https, port, path, headers: { ...given, ...referer, ...own, host }, target, signal });
    },
    mayFollow: ({ hostname }) => hostname === start.hostname,
  });
  try {
    // A redirect to elsewhere is a sign of life, and not ours to follow.
    if (response.status >= 300 && response.status < 400) return { status: 200 };
    return { status: response.status, ...(await readSome(response.body)) };
  } finally {
    response.close();
  }
}

/** The application is told the host that the kubelet asked, with its own port in place of ours. */
function hostHeader({ headers }: ProbingRequest, { port }: HttpProbe, { statusPort, host }: ProbeTarget): string {
  const given = headers.host?.[0] ?? `${host}:${port}`;
  return given.replace(new RegExp(`:${statusPort}$`), `:${port}`);
}

export interface ProbeRequest extends Pick<HttpProbe, "https" | "port" | "path"> {
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
    const request = httpRequest({
      host: target.host,
      port,
      path,
      headers,
      maxHeaderSize: MAX_HEADER_BYTES,
      ...connection,
    });
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

/**
 * At most as much as the kubelet keeps of it, as it is. The status has told how the application is: what is cut off or
 * takes longer than the probe may does not change that.
 */
async function readSome(body: AsyncIterable<Buffer>): Promise<Pick<Answer, "body" | "headers">> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= MAX_BODY_BYTES) break;
    }
  } catch {
    // What there is of it.
  }
  const read = Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES);
  return isUtf8(read) ? { body: read.toString() } : { body: read, headers: { "content-type": BINARY } };
}
