/** Connections to the control plane: each stream has its own, and one may be opened before the stream that will use it. */
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import type { GrpcConnection } from "#lib/grpc/client.ts";
import type { ClientTls } from "#lib/grpc/connect.ts";
import { GrpcError } from "#lib/grpc/status.ts";
import { errorText } from "#lib/mesh-error.ts";
import { type ControlPlaneOptions, clientTls, connectControlPlane } from "../control-plane.ts";

/** How long a stream waits for a connection, however many attempts that takes. */
const CONNECT_TIMEOUT_MS = 5_000;
const RECONNECT_MS = 500;
/** A stream waits no longer for a connection that was begun before it came. */
const AHEAD_TIMEOUT_MS = 1_000;
/** Envoy comes, or comes back, within a second; what is not used by then never will be. */
const SPARE_MS = 15_000;

export class Connections {
  readonly #options: ControlPlaneOptions;
  readonly #warn: (reason: string) => void;
  /** What was read last from files that may be broken or gone when the next stream comes. */
  #tls: ClientTls | undefined;
  /** On the way to become the spare one. */
  #coming: Promise<unknown> | undefined;
  #spare: { readonly connection: GrpcConnection; readonly expiry: NodeJS.Timeout } | undefined;

  constructor(options: ControlPlaneOptions, warn: (reason: string) => void) {
    this.#options = options;
    this.#warn = warn;
  }

  /** The one that is ready, or a new one; rejects when there is none after a while, or when the signal is aborted. */
  async take(signal: AbortSignal): Promise<GrpcConnection> {
    const late = AbortSignal.timeout(CONNECT_TIMEOUT_MS);
    await this.#coming;
    const spare = this.#spare;
    if (spare === undefined) return this.#connect(this.#lastTls(), AbortSignal.any([signal, late]));
    clearTimeout(spare.expiry);
    this.#spare = undefined;
    return spare.connection;
  }

  /** Has one ready for the next stream. Rejects when the control plane cannot be reached anew. */
  async prepare(): Promise<void> {
    if (this.#spare !== undefined) return;
    this.#keep(await this.#connect(this.#readTls(), AbortSignal.timeout(CONNECT_TIMEOUT_MS)));
  }

  /** Has one ready for the first stream, if one attempt will do: the stream finds out what is wrong. */
  async connectAhead(signal: AbortSignal): Promise<void> {
    const soon = AbortSignal.any([signal, AbortSignal.timeout(AHEAD_TIMEOUT_MS)]);
    const connect = async () => connectControlPlane(this.#options, soon, this.#readTls());
    this.#coming = connect().then(
      (connection) => this.#keep(connection),
      () => undefined,
    );
    await this.#coming;
    this.#coming = undefined;
  }

  #readTls(): ClientTls | undefined {
    this.#tls = clientTls(this.#options);
    return this.#tls;
  }

  /** A proxy without its control plane is worse off than one that goes by the former root. */
  #lastTls(): ClientTls | undefined {
    try {
      return this.#readTls();
    } catch (thrown) {
      if (this.#tls === undefined) throw thrown;
      this.#warn(`${errorText(thrown)}; what was read before is used`);
      return this.#tls;
    }
  }

  #keep(connection: GrpcConnection): void {
    if (this.#spare !== undefined) {
      connection.close();
      return;
    }
    const expiry = setTimeout(() => this.close(), SPARE_MS).unref();
    this.#spare = { connection, expiry };
    connection.ending.addEventListener("abort", () => {
      if (this.#spare?.connection === connection) this.close();
    });
  }

  /** Closes what nobody has taken. */
  close(): void {
    clearTimeout(this.#spare?.expiry);
    this.#spare?.connection.close();
    this.#spare = undefined;
  }

  /** Tries until the signal is aborted. */
  async #connect(tls: ClientTls | undefined, over: AbortSignal): Promise<GrpcConnection> {
    const backoff = new Backoff({ initialMs: RECONNECT_MS, maxMs: CONNECT_TIMEOUT_MS });
    let failure: unknown;
    while (!over.aborted) {
      try {
        return await connectControlPlane(this.#options, over, tls);
      } catch (thrown) {
        if (!(thrown instanceof GrpcError)) throw thrown;
        // The time is over: what was wrong before says more.
        if (!over.aborted || failure === undefined) failure = thrown;
      }
      await sleep(backoff.next(), over);
    }
    throw failure;
  }
}
