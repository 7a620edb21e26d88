/** An HTTP server on one address. */
import fastify, { type FastifyInstance } from "fastify";
import { Admission } from "../admission/admission.ts";
import { HTTP_TIMEOUTS, limitConnections, STALLED_MS } from "./limit-connections.ts";
import { listen } from "./listen.ts";
import { formatListenAddress, type ListenAddress } from "./listen-address.ts";

export interface HttpListenerOptions {
  readonly flag: string;
  readonly address: ListenAddress;
  /** Adds what is served. */
  readonly routes: (app: FastifyInstance) => void;
  /** Places for connections; a budget of this listener alone when not given. */
  readonly admission?: Admission;
}

/** Nothing that is served takes a body. */
const MAX_BODY_BYTES = 1024;
const REQUEST_TIMEOUT_MS = 15_000;

export class HttpListener {
  readonly #options: HttpListenerOptions;
  readonly #app: FastifyInstance;

  constructor(options: HttpListenerOptions) {
    this.#options = options;
    this.#app = fastify({
      bodyLimit: MAX_BODY_BYTES,
      requestTimeout: REQUEST_TIMEOUT_MS,
      // Connections are cheap for probes and scrapes. One that is kept could send a thousand requests in one turn of the event loop.
      maxRequestsPerSocket: 1,
      connectionTimeout: STALLED_MS,
      http: HTTP_TIMEOUTS,
      forceCloseConnections: "idle",
      return503OnClosing: false,
    });
    limitConnections(this.#app.server, {
      admission: options.admission ?? new Admission(),
      maxBodyBytes: MAX_BODY_BYTES,
    });
    options.routes(this.#app);
  }

  /** Begins to serve and answers with the address that was taken. */
  async start(): Promise<string> {
    const { flag, address } = this.#options;
    await this.#app.ready();
    const taken = await listen({
      flag,
      address,
      bind: async (wanted) => {
        await this.#app.listen(wanted);
        const bound = this.#app.server.address();
        return typeof bound === "object" && bound !== null ? bound.port : wanted.port;
      },
    });
    return formatListenAddress(taken);
  }

  /** Lets running requests finish, and cuts what is left after the grace time. */
  async stop(graceMs: number): Promise<void> {
    const cut = setTimeout(() => this.#app.server.closeAllConnections(), graceMs);
    await this.#app.close();
    clearTimeout(cut);
  }
}
