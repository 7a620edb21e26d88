/**
 * Gets the key sets that the mesh wants, and gets them again from time to time.
 *
 *     snapshot --wanted--> one loop per address: fetch --> key sets --> next snapshot
 *                             ^        |
 *                             +-- wait +  the usual interval, or a shorter one after a failure
 *
 * A set that was got once is kept while its server is away, and forgotten when nobody wants it any more.
 */
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { KeySetAddress, KeySets } from "#model/key-set.ts";
import type { Source } from "#model/ports.ts";
import type { Snapshot } from "#model/snapshot.ts";

/** A source that takes the answers into its snapshots. */
export interface KeySetTaker extends Pick<Source, "current" | "subscribe"> {
  takeKeySets(keySets: KeySets): void;
}

/** Names of what is counted. */
export const KEY_SET_COUNTERS = {
  pilot_jwks_resolver_network_fetch_success_total: {
    type: "counter",
    help: "Key sets of token issuers that were fetched",
  },
  pilot_jwks_resolver_network_fetch_fail_total: {
    type: "counter",
    help: "Key sets of token issuers that could not be fetched",
  },
} as const;

export interface KeySetSourceOptions {
  readonly taker: KeySetTaker;
  readonly wanted: (snapshot: Snapshot) => readonly KeySetAddress[];
  readonly fetch: (address: KeySetAddress, signal: AbortSignal) => Promise<string>;
  /** PILOT_JWT_PUB_KEY_REFRESH_INTERVAL */
  readonly refreshMs: number;
  readonly log: Logger;
  readonly count?: (name: keyof typeof KEY_SET_COUNTERS) => void;
}

/** The first pause after a failure; pauses grow up to the longest, and are never longer than the usual interval. */
const RETRY_MS = { initialMs: 1_000, maxMs: 60_000 };

export class KeySetSource {
  readonly #options: KeySetSourceOptions;
  readonly #loops = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>();
  readonly #keySets = new Map<string, string>();

  constructor(options: KeySetSourceOptions) {
    this.#options = options;
  }

  /** Follows the wishes of the mesh until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { taker } = this.#options;
    const unsubscribe = taker.subscribe((snapshot) => this.#follow(snapshot));
    this.#follow(taker.current());
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    unsubscribe();
    const running = [...this.#loops.values()];
    for (const { stop } of running) stop.abort();
    await Promise.all(running.map(({ ended }) => ended));
  }

  #follow(snapshot: Snapshot): void {
    const wanted = new Map(this.#options.wanted(snapshot).map((address) => [address.id, address]));
    let forgotten = false;
    for (const [id, { stop }] of this.#loops) {
      if (wanted.has(id)) continue;
      stop.abort();
      this.#loops.delete(id);
      if (this.#keySets.delete(id)) forgotten = true;
    }
    // Not now: those who are told of this snapshot are still being told.
    if (forgotten) queueMicrotask(() => this.#give());
    for (const [id, address] of wanted) {
      if (this.#loops.has(id)) continue;
      const stop = new AbortController();
      this.#loops.set(id, { stop, ended: this.#keep(address, stop.signal) });
    }
  }

  #give(): void {
    this.#options.taker.takeKeySets(new Map(this.#keySets));
  }

  async #keep(address: KeySetAddress, signal: AbortSignal): Promise<void> {
    const { refreshMs } = this.#options;
    const backoff = new Backoff({ ...RETRY_MS, maxMs: Math.min(RETRY_MS.maxMs, refreshMs) });
    while (!signal.aborted) {
      const done = await this.#refresh(address, signal);
      if (done) backoff.reset();
      await sleep(done ? refreshMs : backoff.next(), signal);
    }
  }

  async #refresh(address: KeySetAddress, signal: AbortSignal): Promise<boolean> {
    const { fetch, log, count } = this.#options;
    try {
      const text = await fetch(address, signal);
      if (signal.aborted) return true;
      count?.("pilot_jwks_resolver_network_fetch_success_total");
      if (this.#keySets.get(address.id) === text) return true;
      log.info("keys of a token issuer are fetched", { url: address.id });
      this.#keySets.set(address.id, text);
      this.#give();
      return true;
    } catch (thrown) {
      if (signal.aborted) return true;
      count?.("pilot_jwks_resolver_network_fetch_fail_total");
      const effect = this.#keySets.has(address.id) ? "those of before stay" : "all its tokens are refused";
      log.warn(`keys of a token issuer cannot be fetched: ${effect}`, { url: address.id, reason: errorText(thrown) });
      return false;
    }
  }
}
