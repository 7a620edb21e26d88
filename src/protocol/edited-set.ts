/**
 * A set of names with some changes. A proxy may ask for 100,000 names, one in each request: with a copy of the set for each
 * request, the cost of a request would grow with the names before it.
 *
 * ```
 *   base:     { a b c d ... }          as it was, shared
 *   changes:  [{ x: true }, { b: false, y: true }]   newest first; each at least twice as large as the one before it
 * ```
 *
 * A change is a new map in front; maps of similar size are merged, so each name is copied a logarithmic number of times. When as much
 * was changed as there was, the result is a plain set again.
 */
export function editedSet(set: ReadonlySet<string>, edits: Edits): ReadonlySet<string> {
  const { add = [], remove = [] } = edits;
  const changes = new Map<string, boolean>();
  for (const name of add) changes.set(name, true);
  for (const name of remove) changes.set(name, false);
  for (const [name, isIn] of changes) if (set.has(name) === isIn) changes.delete(name);
  if (changes.size === 0) return set;
  const { base, layers } = set instanceof EditedSet ? set : { base: set, layers: [] };
  const merged = mergedLayers([changes, ...layers]);
  const changed = merged.reduce((sum, { size }) => sum + size, 0);
  const edited = new EditedSet(base, merged, set.size + balance(changes));
  return changed >= Math.max(base.size, FEW) || base.size <= FEW ? new Set(edited) : edited;
}

export interface Edits {
  readonly add?: Iterable<string>;
  /** Goes before `add`. */
  readonly remove?: Iterable<string>;
}

/** As many names are copied at once. */
const FEW = 64;

type Layer = ReadonlyMap<string, boolean>;

class EditedSet implements ReadonlySet<string> {
  readonly base: ReadonlySet<string>;
  readonly layers: readonly Layer[];
  readonly size: number;

  constructor(base: ReadonlySet<string>, layers: readonly Layer[], size: number) {
    this.base = base;
    this.layers = layers;
    this.size = size;
  }

  has(name: string): boolean {
    for (const layer of this.layers) {
      const isIn = layer.get(name);
      if (isIn !== undefined) return isIn;
    }
    return this.base.has(name);
  }

  *keys(): SetIterator<string> {
    const changes = joined(this.layers);
    for (const name of this.base) if (changes.get(name) !== false) yield name;
    for (const [name, isIn] of changes) if (isIn && !this.base.has(name)) yield name;
  }

  values(): SetIterator<string> {
    return this.keys();
  }
  [Symbol.iterator](): SetIterator<string> {
    return this.keys();
  }
  entries(): SetIterator<[string, string]> {
    return new Set(this).entries();
  }
  forEach(visit: (value: string, key: string, set: ReadonlySet<string>) => void): void {
    for (const name of this) visit(name, name, this);
  }
  union<U>(other: ReadonlySetLike<U>): Set<string | U> {
    return new Set(this).union(other);
  }
  intersection<U>(other: ReadonlySetLike<U>): Set<string & U> {
    return new Set(this).intersection(other);
  }
  difference<U>(other: ReadonlySetLike<U>): Set<string> {
    return new Set(this).difference(other);
  }
  symmetricDifference<U>(other: ReadonlySetLike<U>): Set<string | U> {
    return new Set(this).symmetricDifference(other);
  }
  isSubsetOf(other: ReadonlySetLike<unknown>): boolean {
    return new Set(this).isSubsetOf(other);
  }
  isSupersetOf(other: ReadonlySetLike<unknown>): boolean {
    return new Set(this).isSupersetOf(other);
  }
  isDisjointFrom(other: ReadonlySetLike<unknown>): boolean {
    return new Set(this).isDisjointFrom(other);
  }
}

/** Merges the newest layers until each is at least twice as large as the one before it. */
function mergedLayers(layers: readonly Layer[]): readonly Layer[] {
  let [newest, ...older] = layers;
  if (newest === undefined) return layers;
  for (let next = older[0]; next !== undefined && next.size < 2 * newest.size; next = older[0]) {
    newest = joined([newest, next]);
    older = older.slice(1);
  }
  return [newest, ...older];
}

/** Newer ones go before older ones. */
function joined(layers: readonly Layer[]): Layer {
  const [only] = layers;
  if (only !== undefined && layers.length === 1) return only;
  return new Map(layers.toReversed().flatMap((layer) => [...layer]));
}

/** By how much changes, all of which change something, make a set larger. */
function balance(changes: Layer): number {
  let sum = 0;
  for (const isIn of changes.values()) sum += isIn ? 1 : -1;
  return sum;
}
