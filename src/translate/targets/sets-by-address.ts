/** Which services have an endpoint with an address. There are thousands of endpoints, and mostly those of one service change. */
import type { EndpointSet } from "#model/service/endpoint.ts";
import type { ServiceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { changedKeys } from "../recipes/changed-keys.ts";
import { revised } from "../recipes/indexes.ts";

type Sets = ReadonlyMap<ServiceKey, EndpointSet>;
type KeysByAddress = ReadonlyMap<string, readonly ServiceKey[]>;

/** With more changes than that the index is made anew. */
const MANY = 64;
const NONE: readonly ServiceKey[] = [];

/** Keys of the services that have an endpoint with that address, in the order of the services. */
export function setsAtAddress({ endpoints, features }: Snapshot, address: string): readonly ServiceKey[] {
  const index = revised<readonly [Sets], AddressIndex>(
    features,
    { key: "sets by address", from: [endpoints] },
    (last) => AddressIndex.of(endpoints, last?.value),
  );
  return index.keysAt(address);
}

/** An index of endpoints as they once were, beside one of what differs by now. */
class AddressIndex {
  readonly #sets: Sets;
  readonly #base: { readonly sets: Sets; readonly keys: KeysByAddress };
  /** Of all services whose endpoints are others than in the base. */
  readonly #changed: ReadonlySet<ServiceKey>;
  readonly #keys: KeysByAddress;

  private constructor(sets: Sets, base: AddressIndex | undefined, changed: ReadonlySet<ServiceKey>) {
    this.#sets = sets;
    this.#base = base === undefined ? { sets, keys: keysByAddress(sets, sets.keys()) } : base.#base;
    this.#changed = changed;
    this.#keys = keysByAddress(sets, changed);
  }

  static of(sets: Sets, last: AddressIndex | undefined): AddressIndex {
    const changed = last && changedKeys("", last.#base.sets, sets);
    if (changed === undefined || changed.size > MANY) return new AddressIndex(sets, undefined, new Set());
    return new AddressIndex(sets, last, changed);
  }

  keysAt(address: string): readonly ServiceKey[] {
    const [before = NONE, now = NONE] = [this.#base.keys.get(address), this.#keys.get(address)];
    const isSame = now.length === 0 && !before.some((key) => this.#changed.has(key));
    if (isSame) return before;
    const keys = new Set([...before.filter((key) => !this.#changed.has(key)), ...now]);
    return keys.size < 2 ? [...keys] : [...this.#sets.keys().filter((key) => keys.has(key))];
  }
}

function keysByAddress(sets: Sets, keys: Iterable<ServiceKey>): KeysByAddress {
  const found = new Map<string, ServiceKey[]>();
  for (const key of keys) {
    for (const { address } of sets.get(key)?.endpoints ?? []) {
      const known = found.get(address);
      if (known === undefined) found.set(address, [key]);
      else if (known.at(-1) !== key) known.push(key);
    }
  }
  return found;
}
