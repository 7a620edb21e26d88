/** The HTTPS server of the webhooks. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import { Admission } from "#lib/admission/admission.ts";
import { HTTP_TIMEOUTS, type LimitedConnections, limitConnections, STALLED_MS } from "#lib/net/limit-connections.ts";
import { listen } from "#lib/net/listen.ts";
import { formatListenAddress, type ListenAddress } from "#lib/net/listen-address.ts";
import type { ServerIdentity, ServerIdentitySource } from "#lib/net/server-identity.ts";
import { handleWebhook, type WebhookContext, type WebhookResponse } from "./handle.ts";

export interface WebhookListenerOptions extends WebhookContext {
  readonly flag: string;
  readonly address: ListenAddress;
  readonly identity: ServerIdentitySource;
  /** Told how long each request about a pod took. */
  readonly onInjectionTime: (seconds: number) => void;
  readonly now: () => number;
  /** Whether the control plane is ready, as on its other ports. */
  readonly readiness: () => { readonly status: number; readonly body: string };
  /** Places for connections; a budget of this listener alone when not given. */
  readonly admission?: Admission;
}

/** Twice what the API server itself lets into etcd, twice. */
const MAX_BODY_BYTES = 6 * 1024 * 1024;
/** The API server sends far larger pieces; each costs more memory than the byte that it may hold. */
const MAX_CHUNKS = 4_096;
const REQUEST_TIMEOUT_MS = 30_000;
const HANDSHAKE_MS = 10_000;
/**
 * The API server closes quiet connections after 90 seconds. We must not do so before: a review that it just then sends on one
 * would fail, it does not repeat it, and with it fails what the review was about.
 */
const IDLE_TIMEOUT_MS = 100_000;

export class WebhookListener {
  readonly #options: WebhookListenerOptions;
  readonly #server: Server;
  readonly #connections: LimitedConnections;
  #unsubscribe: () => void = () => {};

  constructor(options: WebhookListenerOptions) {
    this.#options = options;
    const timeouts = { requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: IDLE_TIMEOUT_MS, ...HTTP_TIMEOUTS };
    this.#server = createServer({ ...timeouts, handshakeTimeout: HANDSHAKE_MS }, (request, response) => {
      void this.#serve(request, response);
    });
    this.#server.setTimeout(STALLED_MS);
    this.#connections = limitConnections(this.#server, {
      admission: options.admission ?? new Admission(),
      // A larger body gets an answer that says so.
      maxBodyBytes: 2 * MAX_BODY_BYTES,
    });
  }

  /** Begins to serve and answers with the address that was taken. A renewed certificate holds for new connections. */
  async start(): Promise<string> {
    const { flag, address, identity } = this.#options;
    const show = (current: ServerIdentity) =>
      this.#server.setSecureContext({ cert: current.certificates, key: current.key, minVersion: "TLSv1.2" });
    show(identity.current());
    this.#unsubscribe = identity.subscribe(show);
    const taken = await listen({ flag, address, bind: (wanted) => this.#bind(wanted) });
    return formatListenAddress(taken);
  }

  /** Lets running requests finish, and cuts what is left after the grace time. */
  async stop(graceMs: number): Promise<void> {
    this.#unsubscribe();
    const cut = setTimeout(() => this.#server.closeAllConnections(), graceMs);
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
    });
    clearTimeout(cut);
  }

  #bind({ host, port }: ListenAddress): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port }, () => {
        this.#server.off("error", reject);
        const bound = this.#server.address();
        resolve(typeof bound === "object" && bound !== null ? bound.port : port);
      });
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { now, onInjectionTime } = this.#options;
    const startedAt = now();
    const path = (request.url ?? "/").replace(/\?.*$/s, "");
    const { status, contentType, body } = await this.#answer(request, path);
    response.writeHead(status, { "content-type": contentType }).end(body);
    if (path.startsWith("/inject")) onInjectionTime((now() - startedAt) / 1000);
  }

  async #answer(request: IncomingMessage, path: string): Promise<WebhookResponse> {
    const plain = { contentType: "text/plain; charset=utf-8" };
    if (path === "/httpsReady") return { ...plain, status: 200, body: "" };
    if (path === "/ready") return { ...plain, ...this.#options.readiness() };
    const body = await bodyOf(request, (bytes) => this.#connections.keeps(request, bytes));
    if (body === undefined) return { ...plain, status: 400, body: `limit is ${MAX_BODY_BYTES}\n` };
    const contentType = request.headers["content-type"] ?? "";
    try {
      return handleWebhook({ path, contentType, body }, this.#options);
    } catch (thrown) {
      // A bug must not end the control plane for all proxies: this pod is refused, and the log tells.
      this.#options.log("bug in a webhook", {
        path,
        reason: thrown instanceof Error ? String(thrown.stack) : String(thrown),
      });
      return { ...plain, status: 500, body: "internal error\n" };
    }
  }
}

/** Undefined when it is too large, or when the caller went away. */
async function bodyOf(request: IncomingMessage, keeps: (bytes: number) => void): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_BODY_BYTES) continue;
      if (chunks.push(chunk) > MAX_CHUNKS) {
        request.destroy();
        return undefined;
      }
      keeps(size);
    }
  } catch {
    return undefined; // nobody is left to answer
  }
  return size > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks).toString("utf8");
}
