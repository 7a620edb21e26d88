/** Bounds the connections of a server so that callers which hold connections cannot keep others out. */
import type { Socket } from "node:net";

interface Use {
  running: number;
  used: boolean;
}

/**
 * When the limit is reached, a new connection replaces the one that is needed least: first one that was never used, then one that is
 * idle, then the least recently used one. Refusing the new one instead would let a flood keep probes out.
 */
export class ConnectionLimit {
  readonly #max: number;
  /** The least recently used first. */
  readonly #connections = new Map<Socket, Use>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#connections.size;
  }

  add(socket: Socket): void {
    if (this.#connections.size >= this.#max) this.#evict();
    this.#connections.set(socket, { running: 0, used: false });
    socket.once("close", () => this.#connections.delete(socket));
  }

  /** Counts a request; gives the number of those that run on the connection. */
  begin(socket: Socket): number {
    const use = this.#connections.get(socket);
    if (use === undefined) return 0;
    this.#connections.delete(socket);
    this.#connections.set(socket, use);
    use.used = true;
    return ++use.running;
  }

  end(socket: Socket): void {
    const use = this.#connections.get(socket);
    if (use !== undefined) use.running--;
  }

  #evict(): void {
    let [worst] = this.#connections.keys();
    let isIdle = false;
    for (const [socket, { running, used }] of this.#connections) {
      if (running > 0 || (used && isIdle)) continue;
      worst = socket;
      if (!used) break;
      isIdle = true;
    }
    if (worst === undefined) return;
    this.#connections.delete(worst);
    worst.destroy();
  }
}
