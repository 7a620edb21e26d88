/** Requests to Envoy's admin port, to applications and to scrape targets: all of them near. */
import { type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";
import type { Connect } from "./place.ts";

export interface HttpRequest {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
  /** For the answer as a whole. */
  readonly timeoutMs: number;
  /** Over TLS, whoever answers: near servers have certificates that nobody could check. */
  readonly https?: boolean;
  /** Only who has a certificate that this machine trusts is believed. */
  readonly verified?: boolean;
  /** Gives up when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** How to get there, when it is not here. */
  readonly connect?: Connect | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Applications that say more than the 16 KB that Node takes are not ill for that. Istio's agent takes ten times as many. */
export const MAX_HEADER_BYTES = 1024 * 1024;

/** The answer to a request, whatever its status. */
export async function fetchText(wanted: HttpRequest): Promise<HttpAnswer> {
  const response = await send(wanted);
  response.setEncoding("utf8");
  let body = "";
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

/** Sends a request, and gives the answer when it begins. No connection is kept. */
export async function send(wanted: HttpRequest): Promise<IncomingMessage> {
  const { host, port, path, method = "GET", headers = {}, body } = wanted;
  const where = formatRequest(wanted);
  const { signal, settled } = giveUp(wanted);
  try {
    const socket = await specialConnection(wanted, signal);
    return await new Promise((resolve, reject) => {
      // With an agent, be it none, Node would make a connection of its own.
      const options = socket === undefined ? { agent: false } : { createConnection: () => socket };
      const limits = { maxHeaderSize: MAX_HEADER_BYTES };
      const outgoing = request({ host, port, path, method, headers: { ...headers }, ...limits, ...options });
      let answer: IncomingMessage | undefined;
      const cut = () => (answer ?? outgoing).destroy(signal.reason);
      signal.addEventListener("abort", cut, { once: true });
      outgoing.on("response", (response) => {
        answer = response;
        resolve(response);
      });
      outgoing.on("error", reject);
      outgoing.on("close", () => {
        settled();
        signal.removeEventListener("abort", cut);
      });
      if (signal.aborted) cut();
      outgoing.end(body);
    });
  } catch (cause) {
    settled();
    throw cause instanceof MeshError ? cause : new MeshError("HTTP_FAILED", where, { cause });
  }
}

/** Aborted when the answer takes too long or nobody wants it any more; `settled` says that it need not be watched. */
export function giveUp(wanted: HttpRequest): { readonly signal: AbortSignal; readonly settled: () => void } {
  const late = new AbortController();
  const timer = setTimeout(() => {
    late.abort(new MeshError("HTTP_FAILED", `${formatRequest(wanted)}: no answer in ${wanted.timeoutMs} ms`));
  }, wanted.timeoutMs);
  const signal = wanted.signal === undefined ? late.signal : AbortSignal.any([late.signal, wanted.signal]);
  return { signal, settled: () => clearTimeout(timer) };
}

/** A request in words, for messages. */
export function formatRequest({ host, port, path, method = "GET", https }: HttpRequest): string {
  return `${method} ${https ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}${path}`;
}

/** A connection that is more than the usual one; undefined where the usual one will do. */
export async function specialConnection(wanted: HttpRequest, signal: AbortSignal): Promise<Socket | undefined> {
  const { host, port, connect, https = false, verified = false } = wanted;
  const socket = connect === undefined ? undefined : await connect({ host, port }, signal);
  if (!https) return socket;
  const { connect: connectTls } = await import("node:tls");
  return new Promise((resolve, reject) => {
    const to = socket === undefined ? { host, port } : { socket };
    const secure = connectTls({ ...to, rejectUnauthorized: verified }, () => resolve(secure));
    const cut = () => secure.destroy(signal.reason);
    signal.addEventListener("abort", cut, { once: true });
    secure.once("close", () => signal.removeEventListener("abort", cut));
    secure.on("error", reject);
  });
}
