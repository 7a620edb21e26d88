/** Requests to the API server: JSON over HTTPS, and answers that end only when the watch does. */
import { once } from "node:events";
import { type IncomingMessage, Agent as PlainAgent, request as plainRequest } from "node:http";
import { Agent, request } from "node:https";
import { isRecord } from "../json/is-record.ts";
import { errorText, MeshError } from "../mesh-error.ts";
import { limitConnecting } from "../net/connect-limit.ts";
import { TunnelAgent } from "../net/tunnel-agent.ts";
import type { ClusterAccess, Credentials } from "./cluster-access.ts";

/** An object as the API server sends it. */
export interface RawObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: RawMetadata;
  readonly [field: string]: unknown;
}

export interface RawMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
  readonly [field: string]: unknown;
}

export interface ApiCall {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  /** Of the body; JSON when not given. */
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

/** The API server refused. */
export class ApiError extends MeshError {
  readonly status: number;
  /** A word such as `NotFound`, `Conflict`, `Expired`. */
  readonly reason: string;
  /** How long the server asks us to stay away. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, answer: { status: number; reason: string; retryAfterMs?: number | undefined }) {
    super("KUBE_API_REFUSED", message);
    this.status = answer.status;
    this.reason = answer.reason;
    this.retryAfterMs = answer.retryAfterMs;
  }
}

export const MERGE_PATCH = "application/merge-patch+json";
export const JSON_PATCH = "application/json-patch+json";
export const APPLY_PATCH = "application/apply-patch+yaml";

/** Without a byte of an answer. Webhooks, which the server asks in between, may take 30 s. */
const ANSWER_MS = 40_000;
/** The kernel probes a silent connection after this time, and ends it 10 s later when no probe is answered. */
const KEEPALIVE_MS = 15_000;
/** No object, and no page of a list, is near that. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

interface ApiTimes {
  /** Longest wait for each part of an answer. */
  readonly answerMs?: number;
  readonly keepaliveMs?: number;
}

/** What a system does until there is a connection. */
const CONNECTING: ReadonlySet<string> = new Set(["connect", "getaddrinfo"]);

/** A client of one API server. Connections are kept open between requests. */
export class KubernetesApi {
  readonly access: ClusterAccess;
  readonly #base: URL;
  readonly #agent: Agent | PlainAgent;
  readonly #answerMs: number;
  readonly #keepaliveMs: number;
  #away: AbortController | undefined;

  constructor(access: ClusterAccess, { answerMs = ANSWER_MS, keepaliveMs = KEEPALIVE_MS }: ApiTimes = {}) {
    this.access = access;
    this.#answerMs = answerMs;
    this.#keepaliveMs = keepaliveMs;
    this.#base = new URL(access.server);
    const isPlain = this.#base.protocol === "http:";
    const { proxy, ca, insecure } = access;
    const options = { keepAlive: true, ca, rejectUnauthorized: insecure !== true };
    if (isPlain)
      this.#agent = new PlainAgent({
        keepAlive: true,
        ...(proxy !== undefined && { proxyEnv: { HTTP_PROXY: proxy } }),
      });
    else this.#agent = proxy === undefined ? new Agent(options) : new TunnelAgent(proxy, options);
  }

  /** While the server cannot be reached: aborts when it answers again. */
  get returned(): AbortSignal | undefined {
    return this.#away?.signal;
  }

  /** The answer as JSON. Throws an ApiError when the server refuses, a MeshError when it cannot be reached. */
  async call<Answer = RawObject>(call: ApiCall): Promise<Answer> {
    const response = await this.#send(call);
    const text = await textOf(response, call);
    if ((response.statusCode ?? 0) >= 300) throw refusal(call, response, text);
    try {
      return JSON.parse(text) as Answer;
    } catch (cause) {
      throw unreachable(call, cause);
    }
  }

  /** The lines of an answer as they come, without end until the server or the signal ends them. `answered`: it begins. */
  async *lines(call: ApiCall, answered?: () => void): AsyncGenerator<string> {
    const response = await this.#send(call);
    if ((response.statusCode ?? 0) >= 300) throw refusal(call, response, await textOf(response, call));
    // Here silence says nothing.
    response.setTimeout(0);
    response.setEncoding("utf8");
    answered?.();
    let rest = "";
    for await (const chunk of chunksOf(response, call)) {
      const pieces = String(chunk).split("\n");
      pieces[0] = rest + pieces[0];
      rest = pieces.pop() ?? "";
      yield* pieces;
      if (rest.length > MAX_ANSWER_BYTES) throw unreachable(call, new Error("an object is too large"));
    }
  }

  /** Ends idle connections. */
  close(): void {
    this.#agent.destroy();
  }

  async #send(call: ApiCall): Promise<IncomingMessage> {
    const { method = "GET", contentType = "application/json", signal } = call;
    const credentials = await this.access.credentials();
    const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body));
    const send = this.#base.protocol === "http:" ? plainRequest : request;
    const sent = send(this.#urlOf(call), {
      method,
      agent: this.#agent,
      ...this.#tlsOf(credentials),
      ...(signal !== undefined && { signal }),
      headers: {
        accept: "application/json",
        ...this.access.impersonation,
        ...(credentials.authorization !== undefined && { authorization: credentials.authorization }),
        ...(body !== undefined && { "content-type": contentType, "content-length": body.length }),
      },
    });
    limitConnecting(sent);
    // Peers that vanish without a word are noticed by the kernel, also on a watch where nothing happens.
    sent.on("socket", (socket) => socket.setKeepAlive(true, this.#keepaliveMs));
    const answerMs = this.#answerMs;
    let response: IncomingMessage | undefined;
    sent.setTimeout(answerMs, () => (response ?? sent).destroy(new Error(`no answer in ${answerMs / 1000} s`)));
    sent.end(body);
    try {
      [response] = (await once(sent, "response")) as [IncomingMessage];
      this.#away?.abort();
      this.#away = undefined;
      return response;
    } catch (cause) {
      if (signal?.aborted !== true) this.#away ??= new AbortController();
      throw unreachable(call, cause);
    }
  }

  #urlOf({ path, query = {} }: ApiCall): URL {
    const url = new URL(this.#base.pathname.replace(/\/$/, "") + path, this.#base);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    return url;
  }

  #tlsOf({ certificate, key }: Credentials): { cert?: string; key?: string; servername?: string } {
    const { serverName } = this.access;
    return {
      ...(certificate !== undefined && key !== undefined && { cert: certificate, key }),
      ...(serverName !== undefined && { servername: serverName }),
    };
  }
}

async function textOf(response: IncomingMessage, call: ApiCall): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(response, call)) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw unreachable(call, new Error("the answer is too large"));
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

async function* chunksOf(response: IncomingMessage, call: ApiCall): AsyncGenerator<Buffer> {
  try {
    yield* response;
  } catch (cause) {
    // Node says no more than "aborted".
    const isCutOff = cause instanceof Error && "code" in cause && cause.code === "ECONNRESET";
    throw unreachable(call, isCutOff ? new Error("the connection broke", { cause }) : cause);
  }
}

function refusal(call: ApiCall, { statusCode = 0, headers }: IncomingMessage, text: string): ApiError {
  const { message, reason } = statusOf(text);
  const seconds = Number(headers["retry-after"]);
  return new ApiError(`${described(call)}: ${message || `HTTP status ${statusCode}`}`, {
    status: statusCode,
    reason,
    retryAfterMs: seconds > 0 ? seconds * 1000 : undefined,
  });
}

/** What a `Status` object says. */
function statusOf(text: string): { readonly message: string; readonly reason: string } {
  try {
    const status: unknown = JSON.parse(text);
    if (!isRecord(status)) return { message: "", reason: "" };
    return { message: String(status.message ?? ""), reason: String(status.reason ?? "") };
  } catch {
    return { message: text.slice(0, 200), reason: "" };
  }
}

function unreachable(call: ApiCall, cause: unknown): MeshError {
  if (cause instanceof MeshError) return cause;
  return new MeshError("KUBE_API_UNREACHABLE", described(call), { cause });
}

/** Why there is no connection to the server, whatever is asked for; undefined where something else is the matter. */
export function connectionTrouble(problem: unknown): string | undefined {
  const cause = isUnreachable(problem) && problem instanceof Error ? problem.cause : undefined;
  const isOfConnection = cause instanceof Error && "syscall" in cause && CONNECTING.has(String(cause.syscall));
  return isOfConnection ? errorText(cause) : undefined;
}

/** The server was not reached, or its answer broke off: it refused nothing. */
export function isUnreachable(problem: unknown): boolean {
  return problem instanceof MeshError && problem.code === "KUBE_API_UNREACHABLE";
}

function described({ method = "GET", path }: ApiCall): string {
  return `Kubernetes ${method} ${path}`;
}
