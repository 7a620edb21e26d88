/** HTTP requests to servers that configuration names: limited in time and size, checked at each redirect. */
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { MeshError } from "#lib/mesh-error.ts";
import { limitConnecting } from "#lib/net/connect-limit.ts";
import { environmentProxy, type ProxyEnvironment } from "#lib/net/environment-proxy.ts";
import { TunnelAgent } from "#lib/net/tunnel-agent.ts";
import { followRedirects, type Redirect } from "../redirects.ts";
import { assertNotLocal, guardedLookup } from "./address-guard.ts";
import { MAX_MODULE_BYTES } from "./unpack.ts";

export interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: "GET" | "POST" | undefined;
  readonly body?: string | undefined;
  /** Certificates are not checked. */
  readonly insecure: boolean;
  /** Whether a host, with its port, may be this machine. */
  readonly mayBeLocal: (host: string) => boolean;
  /** What names the proxies through which servers are reached. */
  readonly proxies: ProxyEnvironment;
  readonly signal: AbortSignal;
  /** Largest answer; modules set the default. */
  readonly maxBytes?: number;
}

export interface GetAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** The answer, whatever its status, after redirects. Credentials do not follow to another host, nor back from there. */
export async function httpGet(url: URL, options: GetOptions): Promise<GetAnswer> {
  const { method, body, mayBeLocal, ...rest } = options;
  let headers = options.headers ?? {};
  const ask = async (redirect: Redirect | undefined) => {
    const to = redirect?.url ?? url;
    if (!mayBeLocal(to.host)) assertNotLocal(to);
    if (to.host !== url.host) headers = withoutCredentials(headers);
    const again = redirect === undefined || redirect.sameMethod ? { method, body } : {};
    const response = await send(to, { ...rest, mayBeLocal, headers, ...again });
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

function send(url: URL, options: GetOptions): Promise<IncomingMessage> {
  const { method = "GET", headers, body, insecure, mayBeLocal, proxies, signal } = options;
  const proxy = environmentProxy(url.href, proxies);
  const isSecure = url.protocol === "https:";
  const request = isSecure ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method,
      headers: { ...headers },
      agent:
        proxy === undefined
          ? false
          : isSecure
            ? new TunnelAgent(proxy)
            : new Agent({ proxyEnv: { HTTP_PROXY: proxy } }),
      signal,
      rejectUnauthorized: !insecure,
      // Behind a proxy it is the proxy that looks names up; the proxy itself was named by whoever runs the workload.
      ...(proxy !== undefined || mayBeLocal(url.host) ? {} : { lookup: guardedLookup }),
    });
    limitConnecting(sent);
    sent.on("response", resolve);
    sent.on("error", (cause) => reject(failure(url, signal, cause)));
    sent.end(body);
  });
}

async function readBody(response: IncomingMessage, options: GetOptions): Promise<Buffer> {
  const { maxBytes = MAX_MODULE_BYTES, signal } = options;
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response) {
      size += chunk.length;
      if (size > maxBytes) throw new MeshError("WASM_DOWNLOAD_FAILED", `the answer has more than ${maxBytes} bytes`);
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

function failure(url: URL | undefined, { aborted }: AbortSignal, cause: unknown): unknown {
  if (cause instanceof MeshError) return cause;
  const where = url === undefined ? "the download" : `${url.origin}${url.pathname}`;
  if (aborted) return new MeshError("WASM_DOWNLOAD_FAILED", `${where}: no answer in time`);
  return new MeshError("WASM_DOWNLOAD_FAILED", where, { cause });
}
