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
  const changes = compare([from], [to]);
  const result = changes.changed.size + changes.removed.size === 0 ? NO_CHANGES : changes;
  const targets = remembered.get(from) ?? new WeakMap<Layer<Versioned>, Changes>();
  remembered.set(from, targets.set(to, result));
  return result;
}

function compare(from: Layers<Versioned>, to: Layers<Versioned>): Changes {
  const changed = new Set<string>();
  const removed = new Set<string>();
  for (const name of from.flatMap((layer) => [...layer.keys()])) {
    if (findResource(to, name) === undefined) removed.add(name);
  }
  for (const name of to.flatMap((layer) => [...layer.keys()])) {
    if (findResource(from, name)?.version !== findResource(to, name)?.version) changed.add(name);
  }
  return { changed, removed };
}

function union(sets: readonly ReadonlySet<string>[]): ReadonlySet<string> {
  return sets.reduce((all, set) => all.union(set));
}
