/**
 * What callers may take of the webhooks' port. They are not authenticated, so each address has a share of its own: whoever
 * floods the port does not keep the API server off it.
 */

export interface PeerLimitsOptions {
  readonly connections: number;
  /** Of requests that are still being read. */
  readonly bytes: number;
}

const PER_PEER: PeerLimitsOptions = { connections: 128, bytes: 12 * 1024 * 1024 };
const ALTOGETHER: PeerLimitsOptions = { connections: 2_048, bytes: 36 * 1024 * 1024 };

/** Counts connections and bytes by address. */
export class PeerLimits {
  readonly #connections = new Shares(PER_PEER.connections, ALTOGETHER.connections);
  readonly #bytes = new Shares(PER_PEER.bytes, ALTOGETHER.bytes);

  /** Whether the address may have another connection; if so, it counts until `disconnect`. */
  connect(address: string): boolean {
    return this.#connections.take(address, 1);
  }

  disconnect(address: string): void {
    this.#connections.give(address, 1);
  }

  /** Whether so many bytes may be kept for the address; if so, they count until `release`. */
  keep(address: string, bytes: number): boolean {
    return this.#bytes.take(address, bytes);
  }

  release(address: string, bytes: number): void {
    this.#bytes.give(address, bytes);
  }
}

class Shares {
  readonly #most: number;
  readonly #mostOfAll: number;
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(most: number, mostOfAll: number) {
    this.#most = most;
    this.#mostOfAll = mostOfAll;
  }

  take(address: string, amount: number): boolean {
    const own = (this.#taken.get(address) ?? 0) + amount;
    if (own > this.#most || this.#total + amount > this.#mostOfAll) return false;
    this.#taken.set(address, own);
    this.#total += amount;
    return true;
  }

  give(address: string, amount: number): void {
    const own = (this.#taken.get(address) ?? 0) - amount;
    if (own > 0) this.#taken.set(address, own);
    else this.#taken.delete(address);
    this.#total -= amount;
  }
}
