/** The HTTPS server of the webhooks. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import { listen } from "#lib/net/listen.ts";
import { formatListenAddress, type ListenAddress } from "#lib/net/listen-address.ts";
import type { ServerIdentity, ServerIdentitySource } from "#lib/net/server-identity.ts";
import { handleWebhook, type WebhookContext, type WebhookResponse } from "./handle.ts";
import { PeerLimits } from "./peer-limits.ts";

export interface WebhookListenerOptions extends WebhookContext {
  readonly flag: string;
  readonly address: ListenAddress;
  readonly identity: ServerIdentitySource;
  /** Told how long each request about a pod took. */
  readonly onInjectionTime: (seconds: number) => void;
  readonly now: () => number;
  /** Whether the control plane is ready, as on its other ports. */
  readonly readiness: () => { readonly status: number; readonly body: string };
}

/** Twice what the API server itself lets into etcd, twice. */
const MAX_BODY_BYTES = 6 * 1024 * 1024;
const REQUEST_TIMEOUT_MS = 30_000;
/**
 * The API server closes quiet connections after 90 seconds. We must not do so before: a review that it just then sends on one
 * would fail, it does not repeat it, and with it fails what the review was about.
 */
const IDLE_TIMEOUT_MS = 100_000;
/** For the handshake, and for the headers of a request. */
const START_TIMEOUT_MS = 10_000;

export class WebhookListener {
  readonly #options: WebhookListenerOptions;
  readonly #server: Server;
  readonly #limits = new PeerLimits();
  #unsubscribe: () => void = () => {};

  constructor(options: WebhookListenerOptions) {
    this.#options = options;
    const timeouts = {
      handshakeTimeout: START_TIMEOUT_MS,
      headersTimeout: START_TIMEOUT_MS,
      connectionsCheckingInterval: START_TIMEOUT_MS / 2,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
    };
    this.#server = createServer(timeouts, (request, response) => {
      void this.#serve(request, response);
    });
    this.#server.on("connection", (socket: Socket) => this.#admit(socket));
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

  #admit(socket: Socket): void {
    const { remoteAddress = "" } = socket;
    if (this.#limits.connect(remoteAddress)) {
      socket.once("close", () => this.#limits.disconnect(remoteAddress));
      return;
    }
    this.#options.count("mizzen_webhook_refused_total");
    socket.destroy();
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
    const body = await this.#bodyOf(request);
    if (typeof body !== "string") return { ...plain, ...body };
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

  /** The body, or why there is none. What is too large is read to its end, so that the caller reads the answer. */
  async #bodyOf(request: IncomingMessage): Promise<string | { readonly status: number; readonly body: string }> {
    const { remoteAddress = "" } = request.socket;
    const chunks: Buffer[] = [];
    let [size, kept, isRefused] = [0, 0, false];
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        size += chunk.length;
        isRefused ||= size > MAX_BODY_BYTES || !this.#limits.keep(remoteAddress, chunk.length);
        if (isRefused) chunks.length = 0;
        else chunks.push(chunk);
        kept += isRefused ? 0 : chunk.length;
      }
    } catch {
      return { status: 400, body: "" }; // nobody is left to answer
    } finally {
      this.#limits.release(remoteAddress, kept);
    }
    if (size > MAX_BODY_BYTES) return { status: 400, body: `limit is ${MAX_BODY_BYTES}\n` };
    return isRefused ? this.#refuse() : Buffer.concat(chunks).toString("utf8");
  }

  #refuse(): { readonly status: number; readonly body: string } {
    this.#options.count("mizzen_webhook_refused_total");
    return { status: 429, body: "too many bytes are being read\n" };
  }
}
