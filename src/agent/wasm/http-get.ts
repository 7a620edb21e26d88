/** HTTP requests to servers that configuration names: limited in time and size, checked at each redirect. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { MeshError } from "#lib/mesh-error.ts";
import { assertNotLocal, guardedLookup } from "./address-guard.ts";
import { MAX_MODULE_BYTES } from "./unpack.ts";

export interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: "GET" | "POST";
  readonly body?: string;
  /** Certificates are not checked. */
  readonly insecure: boolean;
  /** Whether a host, with its port, may be this machine. */
  readonly mayBeLocal: (host: string) => boolean;
  readonly signal: AbortSignal;
  /** Largest answer; modules set the default. */
  readonly maxBytes?: number;
}

export interface GetAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

const MAX_REDIRECTS = 10;

/** The answer, whatever its status, after redirects. Credentials do not follow to another host. */
export async function httpGet(url: URL, options: GetOptions): Promise<GetAnswer> {
  let current = url;
  let headers = options.headers ?? {};
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    if (current.protocol !== "http:" && current.protocol !== "https:")
      throw new MeshError("WASM_DOWNLOAD_FAILED", `${current.href}: unsupported protocol`);
    if (!options.mayBeLocal(current.host)) assertNotLocal(current);
    const response = await send(current, { ...options, headers });
    const { statusCode: status = 0, headers: answered } = response;
    const { location } = answered;
    if (status < 300 || status >= 400 || location === undefined || !URL.canParse(location, current.href)) {
      return { status, headers: answered, body: await readBody(response, options) };
    }
    response.destroy();
    const next = new URL(location, current);
    if (next.host !== current.host) headers = withoutCredentials(headers);
    current = next;
  }
  throw new MeshError("WASM_DOWNLOAD_FAILED", `${url.href}: stopped after ${MAX_REDIRECTS} redirects`);
}

function send(url: URL, options: GetOptions): Promise<IncomingMessage> {
  const { method = "GET", headers, body, insecure, mayBeLocal, signal } = options;
  return new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, {
      method,
      headers: { ...headers },
      agent: false,
      signal,
      rejectUnauthorized: !insecure,
      ...(mayBeLocal(url.host) ? {} : { lookup: guardedLookup }),
    });
    request.on("response", resolve);
    request.on("error", (cause) => reject(failure(url, signal, cause)));
    request.end(body);
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
