/** Structural sharing: what is equal to before stays the same object, so that changes are found by comparing identities. */
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

/** `next`, sorted, with items that are equal to before kept; `previous` itself where that makes no difference. */
export function keepSorted<T>(previous: readonly T[], next: readonly T[], how: ListRules<T>): readonly T[] {
  const before = new Set(previous);
  let byKey: Map<string, T> | undefined;
  const merged = next.map((item) => {
    if (before.has(item)) return item;
    byKey ??= new Map(previous.map((old) => [how.keyOf(old), old]));
    return how.keep(byKey.get(how.keyOf(item)), item);
  });
  const after = new Set(merged);
  const same = after.size === merged.length && before.size === after.size && before.isSubsetOf(after);
  return same ? previous : merged.sort(how.order);
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
