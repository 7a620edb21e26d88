/** Structural sharing: what is equal to before stays the same object, so that changes are found by comparing identities. */

/** `next`, or `previous` where the two are equal; parts of plain objects and lists that are equal are kept as well. */
export function keepIdentity<T>(previous: unknown, next: T): T {
  if (Object.is(previous, next)) return next;
  if (Array.isArray(previous) && Array.isArray(next)) {
    return keepList(
      previous,
      next.map((item, i) => keepIdentity(previous[i], item)),
    ) as T;
  }
  if (isPlain(previous) && isPlain(next)) return keepObject(previous, next) as T;
  return next;
}

/** `next`, or `previous` where both hold the same objects in the same order. */
export function keepList<T>(previous: readonly T[], next: readonly T[]): readonly T[] {
  const same = previous.length === next.length && previous.every((item, i) => Object.is(item, next[i]));
  return same ? previous : next;
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
