/** How many streams may be served, so that no peer takes the places of the others. */
import type { Caller } from "#model/ports.ts";

/** Part of all places that one identity, or all unauthenticated callers together, may take. */
const LARGEST_PART = 0.5;
const UNAUTHENTICATED = "";

export class ConnectedLimit {
  readonly #max: number;
  readonly #byIdentity = new Map<string, number>();
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Why there is no place for one more; undefined if there is. */
  refusal(caller: Caller | undefined): string | undefined {
    if (this.#count >= this.#max) return `${this.#max} proxies are connected: try another replica`;
    const most = Math.max(1, Math.floor(this.#max * LARGEST_PART));
    if ((this.#byIdentity.get(nameOf(caller)) ?? 0) < most) return undefined;
    const whose = caller === undefined ? "unauthenticated callers" : caller.identity;
    return `${most} streams of ${whose} are connected: try another replica`;
  }

  add(caller: Caller | undefined, difference: 1 | -1): void {
    const name = nameOf(caller);
    const count = (this.#byIdentity.get(name) ?? 0) + difference;
    if (count === 0) this.#byIdentity.delete(name);
    else this.#byIdentity.set(name, count);
    this.#count += difference;
  }
}

function nameOf(caller: Caller | undefined): string {
  return caller?.identity ?? UNAUTHENTICATED;
}
