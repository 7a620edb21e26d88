import { Agent, type AgentOptions, type RequestOptions } from "node:https";
import type { Duplex } from "node:stream";
import { errorText } from "../mesh-error.ts";
import { CONNECT_TIMEOUT_MS, connectTimeout } from "./connect-limit.ts";
import { openTunnel } from "./http-tunnel.ts";

type Done = (error: Error | null, connection?: Duplex) => void;

/** Reaches HTTPS servers through an HTTP proxy. Node's own agent for proxies waits forever for one that does not answer. */
export class TunnelAgent extends Agent {
  readonly #proxy: string;

  /** `proxy` is its URL. */
  constructor(proxy: string, options: AgentOptions = {}) {
    super(options);
    this.#proxy = proxy;
  }

  override createConnection(options: RequestOptions, done: Done): undefined {
    const { host, port } = options;
    const address = `${host?.includes(":") ? `[${host}]` : host}:${port}`;
    const late = new AbortController();
    const timeout = () => late.abort(connectTimeout(new URL(this.#proxy).host, CONNECT_TIMEOUT_MS));
    const timer = setTimeout(timeout, CONNECT_TIMEOUT_MS);
    openTunnel(this.#proxy, address, late.signal)
      .finally(() => clearTimeout(timer))
      .then((socket) => {
        const through = { ...options, socket };
        return super.createConnection(through);
      })
      .then(
        (connection) => done(null, connection ?? undefined),
        (thrown: unknown) => done(Object.assign(new Error(errorText(thrown)), { syscall: "connect" })),
      );
  }
}
