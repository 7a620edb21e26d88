/** HTTP probes with the kubelet's rules: certificates are not verified, redirects on the same host are followed. */
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { connect as tlsConnect } from "node:tls";
import { MeshError } from "#lib/mesh-error.ts";
import type { Answer, IncomingRequest } from "../answer.ts";
import type { HttpProbe } from "./parse.ts";
import type { ProbeTarget } from "./run.ts";

const MAX_REDIRECTS = 10;
const MAX_BODY_BYTES = 10 * 1024;

export interface ProbeResponse {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: AsyncIterable<Buffer>;
  readonly close: () => void;
}

export async function runHttpProbe(probe: HttpProbe, request: IncomingRequest, target: ProbeTarget): Promise<Answer> {
  const headers = { ...request.headers, host: hostHeader(request, probe, target), connection: "close" };
  const deadline = AbortSignal.timeout(probe.timeoutMs);
  let path = probe.path;
  for (let redirects = 0; redirects < MAX_REDIRECTS; redirects++) {
    const response = await sendProbe({ ...probe, path, headers, target, signal: deadline });
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
  if (!probe.https) return overHttp1(probe);
  const socket = await tlsSocket(probe);
  if (socket.alpnProtocol !== "h2") return overHttp1(probe, socket);
  const { overHttp2 } = await import("./http2.ts");
  return overHttp2(probe, socket);
}

function tlsSocket({
  port,
  target: { host, localAddress },
  signal,
}: ProbeRequest): Promise<ReturnType<typeof tlsConnect>> {
  return new Promise((resolve, reject) => {
    const options = { host, port, localAddress, rejectUnauthorized: false, ALPNProtocols: ["h2", "http/1.1"] };
    const socket = tlsConnect(options, () => resolve(socket));
    socket.on("error", reject);
    signal.addEventListener("abort", () => socket.destroy(timedOut()), { once: true });
  });
}

function overHttp1(probe: ProbeRequest, socket?: ReturnType<typeof tlsConnect>): Promise<ProbeResponse> {
  const {
    port,
    path,
    headers,
    signal,
    target: { host, localAddress },
  } = probe;
  return new Promise((resolve, reject) => {
    const connection = socket === undefined ? { localAddress } : { createConnection: () => socket };
    const request = httpRequest({
      host,
      port,
      path,
      headers,
      agent: false,
      ...connection,
    });
    signal.addEventListener("abort", () => request.destroy(timedOut()), { once: true });
    request.on("error", reject);
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

function timedOut(): MeshError {
  return new MeshError("HTTP_FAILED", "no answer in time");
}
