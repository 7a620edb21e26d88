/** Structural sharing: what is equal to before stays the same object, so that changes are found by comparing identities. */
import { changedSorted, type ListChanges, listChanges } from "#lib/collections/list-changes.ts";
import { hasSameItems } from "#lib/collections/same-items.ts";

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

/** `next`, sorted, with items that are equal to before kept; `previous` itself where that makes no difference. */
export function keepSorted<T>(previous: readonly T[], next: readonly T[], how: ListRules<T>): readonly T[] {
  const [before, after] = [new Set(previous), new Set(next)];
  const gone = previous.filter((item) => !after.has(item));
  const byKey = new Map(gone.map((old) => [how.keyOf(old), old]));
  const merged = next.map((item) => (before.has(item) ? item : how.keep(byKey.get(how.keyOf(item)), item)));
  const kept = new Set(merged);
  const isAsLong = merged.length === previous.length && kept.size === merged.length;
  const same = isAsLong && before.size === kept.size && before.isSubsetOf(kept);
  return same ? previous : merged.sort(how.order);
}

/**
 * The same by changes alone. Undefined where these do not tell it all: there are many of them, what is removed is not in the
 * list, an item comes twice, or is equal in order to another, so that `next` decides which comes first.
 */
export function keepChanged<T>(
  previous: readonly T[],
  { removed, added }: ListChanges<T>,
  how: ListRules<T>,
): readonly T[] | undefined {
  if (removed.length + added.length > FEW || removed.some((item) => !previous.includes(item))) return undefined;
  const byKey = new Map(removed.map((old) => [how.keyOf(old), old]));
  const kept = added.map((item) => how.keep(byKey.get(how.keyOf(item)), item));
  if (new Set(kept).size < kept.length) return undefined;
  const changed = changedSorted(previous, listChanges(removed, kept), how.order);
  return kept.some((item) => hasEqual(item, changed, how.order)) ? undefined : changed;
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
