/** Connections to the application that are kept from one probe to the next (ENABLE_PROBE_KEEPALIVE_CONNECTIONS). */
import { Agent, type ClientRequestArgs } from "node:http";
import type { Duplex } from "node:stream";
import { MeshError } from "#lib/mesh-error.ts";
import type { Connect } from "../../place.ts";
import { overTls } from "./http.ts";

/** A probe that is over gives its connection back rather than up, so opening one has a time of its own. */
const OPENING_MS = 10_000;

type Open = (to: ClientRequestArgs, signal: AbortSignal) => Promise<Duplex>;

export class KeptConnections {
  readonly #closed = new AbortController();
  readonly #plain: Agent;
  readonly #secure: Agent;

  constructor(connect: Connect) {
    const { signal } = this.#closed;
    const open = ({ host, port }: ClientRequestArgs, opening: AbortSignal) =>
      connect({ host: host ?? "", port: Number(port) }, opening);
    this.#plain = new OpeningAgent(open, signal);
    this.#secure = new OpeningAgent(async (to, opening) => overTls(await open(to, opening), ["http/1.1"]), signal);
  }

  agentFor({ https }: { readonly https: boolean }): Agent {
    return https ? this.#secure : this.#plain;
  }

  close(): void {
    this.#closed.abort();
    this.#plain.destroy();
    this.#secure.destroy();
  }
}

class OpeningAgent extends Agent {
  readonly #open: Open;
  readonly #closed: AbortSignal;

  constructor(open: Open, closed: AbortSignal) {
    super({ keepAlive: true });
    this.#open = open;
    this.#closed = closed;
  }

  override createConnection(to: ClientRequestArgs, done: (error: Error | null, connection: Duplex) => void): undefined {
    const late = new AbortController();
    const reason = new MeshError("HTTP_FAILED", `no connection in ${OPENING_MS} ms`);
    const timer = setTimeout(() => late.abort(reason), OPENING_MS);
    this.#open(to, AbortSignal.any([late.signal, this.#closed]))
      .finally(() => clearTimeout(timer))
      .then(
        (connection) => done(null, connection),
        // Node takes an error alone, which its types do not say.
        (error) => (done as (error: Error) => void)(error),
      );
  }
}
