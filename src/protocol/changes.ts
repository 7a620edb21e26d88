import { findResource, type Layer, type Layers, type Versioned } from "./resource.ts";

/** How a proxy that has one state gets to another. */
export interface Changes {
  /** New, or of another version. */
  readonly changed: ReadonlySet<string>;
  readonly removed: ReadonlySet<string>;
}

const NOTHING: Layer<Versioned> = new Map<string, Versioned>();
const NO_CHANGES: Changes = { changed: new Set(), removed: new Set() };

/**
 * Changes between two layers. Many proxies go from the same layer to the same layer at about the same time, so the
 * answer is kept as long as both layers exist.
 */
const remembered = new WeakMap<Layer<Versioned>, WeakMap<Layer<Versioned>, Changes>>();

/** What is in `to` but not, or in another version, in `from`, and what is only in `from`. */
export function changesBetween(from: Layers<Versioned>, to: Layers<Versioned>): Changes {
  if (from.length !== 0 && from.length !== to.length) return compare(from, to);
  const each = to.map((layer, index) => layerChanges(from[index] ?? NOTHING, layer)).filter((c) => c !== NO_CHANGES);
  if (each.length <= 1) return each[0] ?? NO_CHANGES;
  const changed = union(each.map((changes) => changes.changed));
  // What left one layer may have come into another.
  const removed = union(each.map((changes) => changes.removed)).difference(changed);
  return { changed, removed };
}

function layerChanges(from: Layer<Versioned>, to: Layer<Versioned>): Changes {
  if (from === to) return NO_CHANGES;
  const known = remembered.get(from)?.get(to);
  if (known !== undefined) return known;
  return remember(from, to, compare([from], [to]));
}

/** Who made one layer of another knows which names may differ: nobody has to compare the others. */
export function noteChanges(from: Layer<Versioned>, to: Layer<Versioned>, names: Iterable<string>): void {
  remember(from, to, compare([from], [to], names));
}

function remember(from: Layer<Versioned>, to: Layer<Versioned>, changes: Changes): Changes {
  const result = changes.changed.size + changes.removed.size === 0 ? NO_CHANGES : changes;
  const targets = remembered.get(from) ?? new WeakMap<Layer<Versioned>, Changes>();
  remembered.set(from, targets.set(to, result));
  return result;
}

function compare(from: Layers<Versioned>, to: Layers<Versioned>, names?: Iterable<string>): Changes {
  const changed = new Set<string>();
  const removed = new Set<string>();
  for (const name of names ?? namesIn(from)) {
    if (findResource(to, name) === undefined && findResource(from, name) !== undefined) removed.add(name);
  }
  for (const name of names ?? namesIn(to)) {
    const resource = findResource(to, name);
    if (resource !== undefined && findResource(from, name)?.version !== resource.version) changed.add(name);
  }
  return { changed, removed };
}

function namesIn(layers: Layers<Versioned>): readonly string[] {
  return layers.flatMap((layer) => [...layer.keys()]);
}

function union(sets: readonly ReadonlySet<string>[]): ReadonlySet<string> {
  return sets.reduce((all, set) => all.union(set));
}
