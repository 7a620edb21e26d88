/** HTTP requests to servers that configuration names: limited in time and size, checked at each redirect. */
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { MeshError } from "#lib/mesh-error.ts";
import { limitConnecting } from "#lib/net/connect-limit.ts";
import { environmentProxy } from "#lib/net/environment-proxy.ts";
import type { FetchGuard } from "#lib/net/fetch-guard.ts";
import { TunnelAgent } from "#lib/net/tunnel-agent.ts";
import { followRedirects, type Redirect } from "../redirects.ts";
import { isInsecure, type ServerRules } from "./server-rules.ts";
import { MAX_MODULE_BYTES } from "./unpack.ts";

export interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: "GET" | "POST" | undefined;
  readonly body?: string | undefined;
  readonly rules: ServerRules;
  /** Checks the address of each server on the way. */
  readonly guard: FetchGuard;
  readonly signal: AbortSignal;
  /** Largest answer; modules set the default. */
  readonly maxBytes?: number;
}

export interface GetAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/**
 * The answer, whatever its status, after redirects. Credentials do not follow to another origin, nor back from there, and
 * nothing follows from TLS to plain text unless that host is configured as insecure.
 */
export async function httpGet(url: URL, options: GetOptions): Promise<GetAnswer> {
  const { method, body, rules, ...rest } = options;
  let headers = options.headers ?? {};
  const ask = async (redirect: Redirect | undefined) => {
    const to = redirect?.url ?? url;
    if (url.protocol === "https:" && to.protocol === "http:" && !isInsecure(to, rules)) throw downgraded(to);
    if (to.origin !== url.origin) {
      headers = withoutCredentials(headers);
      if (body !== undefined) throw misdirected(to);
    }
    const again = redirect === undefined || redirect.sameMethod ? { method, body } : {};
    const response = await send(to, { ...rest, rules, headers, ...again });
    return {
      status: response.statusCode ?? 0,
      location: response.headers.location,
      response,
      close: () => void response.destroy(),
    };
  };
  try {
    const { status, response } = await followRedirects(url, { ask });
    return { status, headers: response.headers, body: await readBody(response, options) };
  } catch (thrown) {
    if (!(thrown instanceof MeshError) || thrown.code !== "HTTP_FAILED") throw thrown;
    throw new MeshError("WASM_DOWNLOAD_FAILED", url.href, { cause: thrown });
  }
}

async function send(url: URL, options: GetOptions): Promise<IncomingMessage> {
  const { method = "GET", headers, body, rules, guard, signal } = options;
  guard.check(url);
  const proxy = environmentProxy(url.href, rules.proxies);
  const isSecure = url.protocol === "https:";
  const request = isSecure ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method,
      headers: { ...headers },
      agent: proxy === undefined ? false : proxyAgent(proxy, isSecure),
      signal,
      rejectUnauthorized: !isInsecure(url, rules),
      // Behind a proxy it is the proxy that looks names up; the proxy itself was named by whoever runs the workload.
      ...(proxy === undefined && { lookup: guard.lookupFor(url) }),
    });
    limitConnecting(sent);
    sent.on("response", resolve);
    sent.on("error", (cause) => reject(failure(url, signal, cause)));
    sent.end(body);
  });
}

/** Node's own agent for proxies waits for ever for one that does not answer, but only where it opens tunnels. */
function proxyAgent(proxy: string, isSecure: boolean): Agent {
  return isSecure ? new TunnelAgent(proxy) : new Agent({ proxyEnv: { HTTP_PROXY: proxy } });
}

async function readBody(response: IncomingMessage, options: GetOptions): Promise<Buffer> {
  const { maxBytes = MAX_MODULE_BYTES, signal } = options;
  const tooLong = new MeshError("WASM_DOWNLOAD_FAILED", `the answer has more than ${maxBytes} bytes`);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    if (Number(response.headers["content-length"]) > maxBytes) throw tooLong;
    for await (const chunk of response) {
      size += chunk.length;
      if (size > maxBytes) throw tooLong;
      chunks.push(chunk);
    }
  } catch (thrown) {
    response.destroy();
    throw thrown instanceof MeshError ? thrown : failure(undefined, signal, thrown);
  }
  return Buffer.concat(chunks);
}

function withoutCredentials(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== "authorization"));
}

function downgraded({ host }: URL): MeshError {
  const text = `a server with TLS redirects to plain http at ${host}, for which WASM_INSECURE_REGISTRIES must list it`;
  return new MeshError("WASM_SERVER_REFUSED", text);
}

function misdirected({ host }: URL): MeshError {
  return new MeshError("WASM_SERVER_REFUSED", `a request with credentials is redirected to another server, ${host}`);
}

function failure(url: URL | undefined, { aborted }: AbortSignal, cause: unknown): unknown {
  if (cause instanceof MeshError) return cause;
  const where = url === undefined ? "the download" : `${url.origin}${url.pathname}`;
  if (aborted) return new MeshError("WASM_DOWNLOAD_FAILED", `${where}: no answer in time`);
  return new MeshError("WASM_DOWNLOAD_FAILED", where, { cause });
}
