/** How often one identity may ask for certificates: a bucket for each, which a token leaves with every request. */

export interface IdentityLimitInput {
  /** Tokens that come back in a second; 0: there is no limit. */
  readonly perSecond: number;
  readonly now: () => number;
}

/** So many seconds may be used at once: all replicas of a workload start together. */
const BURST_SECONDS = 5;
/** Full buckets are forgotten when there are more, so that memory follows the identities that ask now. */
const MANY_BUCKETS = 10_000;

interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

export class IdentityLimit {
  readonly #input: IdentityLimitInput;
  readonly #buckets = new Map<string, Bucket>();

  constructor(input: IdentityLimitInput) {
    this.#input = input;
  }

  /** How many identities are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** False when the identity asked too often; that costs it nothing. */
  take(identity: string): boolean {
    const { perSecond, now } = this.#input;
    if (perSecond <= 0) return true;
    const at = now();
    const tokens = this.#tokens(this.#buckets.get(identity), at);
    if (tokens < 1) return false;
    if (this.#buckets.size >= MANY_BUCKETS) this.#forgetFull(at);
    this.#buckets.set(identity, { tokens: tokens - 1, at });
    return true;
  }

  #tokens(bucket: Bucket | undefined, at: number): number {
    const { perSecond } = this.#input;
    const most = Math.max(1, perSecond * BURST_SECONDS);
    if (bucket === undefined) return most;
    // A clock that was set back gives nothing and takes nothing.
    return Math.min(most, bucket.tokens + (Math.max(0, at - bucket.at) / 1000) * perSecond);
  }

  #forgetFull(at: number): void {
    const most = this.#tokens(undefined, at);
    for (const [identity, bucket] of this.#buckets) {
      if (this.#tokens(bucket, at) >= most) this.#buckets.delete(identity);
    }
  }
}
