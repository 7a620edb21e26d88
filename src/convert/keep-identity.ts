/** Structural sharing: what is equal to before stays the same object, so that changes are found by comparing identities. */
import { changedSorted } from "#lib/list-changes.ts";
import { hasSameItems } from "./memo.ts";

/** `next`, or `previous` where the two are equal; parts of plain objects and lists that are equal are kept as well. */
export function keepIdentity<T>(previous: unknown, next: T): T {
  if (Object.is(previous, next)) return next;
  if (Array.isArray(previous) && Array.isArray(next)) return keepArray(previous, next) as T;
  if (isPlain(previous) && isPlain(next)) return keepObject(previous, next) as T;
  return next;
}

/** How the items of a sorted list are matched with those of the list before. */
export interface ListRules<T> {
  readonly keyOf: (item: T) => string;
  /** The item, or the one of the same key before if the two are equal. */
  readonly keep: (before: T | undefined, item: T) => T;
  readonly order: (a: T, b: T) => number;
}

/**
 * `next`, sorted, with items that are equal to before kept; `previous` itself where that makes no difference. Where few items
 * are new, those alone are put in their places.
 */
export function keepSorted<T>(previous: readonly T[], next: readonly T[], how: ListRules<T>): readonly T[] {
  const [before, after] = [new Set(previous), new Set(next)];
  const gone = previous.filter((item) => !after.has(item));
  const byKey = new Map(gone.map((old) => [how.keyOf(old), old]));
  const kept = new Map<T, T>();
  for (const item of next) if (!before.has(item)) kept.set(item, how.keep(byKey.get(how.keyOf(item)), item));
  const unchanged = new Set(kept.values());
  const changes = {
    removed: gone.filter((item) => !unchanged.has(item)),
    added: [...kept.values()].filter((item) => !before.has(item)),
  };
  const isDistinct = after.size === next.length && unchanged.size === kept.size && before.size === previous.length;
  if (isDistinct && changes.added.length <= FEW) {
    const changed = changedSorted(previous, changes, how.order);
    // Items that are equal in order are in that of `next`.
    if (!changes.added.some((item) => hasEqual(item, changed, how.order))) return changed;
  }
  return next.map((item) => kept.get(item) ?? item).sort(how.order);
}

const FEW = 16;

/** Whether another item of a sorted list is equal in order. */
function hasEqual<T>(item: T, sorted: readonly T[], order: ListRules<T>["order"]): boolean {
  const at = sorted.indexOf(item);
  const [left, right] = [sorted[at - 1], sorted[at + 1]];
  return (left !== undefined && order(left, item) === 0) || (right !== undefined && order(item, right) === 0);
}

function keepArray(previous: readonly unknown[], next: readonly unknown[]): readonly unknown[] {
  const merged = next.map((item, i) => keepIdentity(previous[i], item));
  return hasSameItems(previous, merged) ? previous : merged;
}

function keepObject(previous: Plain, next: Plain): Plain {
  const entries = Object.entries(next).map(([key, value]) => [key, keepIdentity(previous[key], value)] as const);
  const same =
    Object.keys(previous).length === entries.length &&
    entries.every(([key, value]) => Object.hasOwn(previous, key) && Object.is(previous[key], value));
  return same ? previous : Object.fromEntries(entries);
}

type Plain = Record<string, unknown>;

function isPlain(value: unknown): value is Plain {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
