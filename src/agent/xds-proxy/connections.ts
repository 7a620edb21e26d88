/** Connections to the control plane: each stream has its own, and one may be opened before the stream that will use it. */
import type { Client } from "@grpc/grpc-js";
import { type ControlPlaneOptions, connectControlPlane } from "../control-plane.ts";

/** How long a connection is tried for, again and again. */
const CONNECT_TIMEOUT_MS = 5_000;
/** Envoy comes back within a second; what is not used by then never will be. */
const SPARE_MS = 15_000;

export class Connections {
  readonly #options: ControlPlaneOptions;
  #spare: { readonly client: Client; readonly expiry: NodeJS.Timeout } | undefined;

  constructor(options: ControlPlaneOptions) {
    this.#options = options;
  }

  /** The one that is ready, or a new one that is about to connect. */
  async take(): Promise<Client> {
    const spare = this.#spare;
    if (spare === undefined) return connectControlPlane(this.#options);
    clearTimeout(spare.expiry);
    this.#spare = undefined;
    return spare.client;
  }

  /** Has one ready for the next stream. False when the control plane cannot be reached anew. */
  async prepare(): Promise<boolean> {
    if (this.#spare !== undefined) return true;
    const client = await connectControlPlane(this.#options);
    if (!(await isReady(client)) || this.#spare !== undefined) {
      client.close();
      return this.#spare !== undefined;
    }
    const expiry = setTimeout(() => this.close(), SPARE_MS).unref();
    this.#spare = { client, expiry };
    return true;
  }

  /** Closes what nobody has taken. */
  close(): void {
    clearTimeout(this.#spare?.expiry);
    this.#spare?.client.close();
    this.#spare = undefined;
  }
}

/** Whether there is a connection, as soon as there is one or the time is over. */
export function isReady(client: Client): Promise<boolean> {
  return new Promise((resolve) => {
    client.waitForReady(Date.now() + CONNECT_TIMEOUT_MS, (error) => resolve(error === undefined));
  });
}
