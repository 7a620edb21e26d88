/** Whether two answers of a token issuer are the same keys: servers may list them, and their fields, in any order. */
import { isDeepStrictEqual } from "node:util";
import { isRecord } from "#lib/json/is-record.ts";

/** True when the sets hold equal keys. What cannot be read is equal to itself only. */
export function isSameKeySet(before: string, now: string): boolean {
  if (before === now) return true;
  const [a, b] = [parsed(before), parsed(now)];
  return a !== undefined && b !== undefined && isDeepStrictEqual(sorted(a), sorted(b));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Whoever uses the keys finds out as well.
    return undefined;
  }
}

function sorted(set: unknown): unknown {
  if (!isRecord(set) || !Array.isArray(set.keys)) return set;
  return { ...set, keys: set.keys.map((key) => [textOf(key), key]).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)) };
}

function textOf(key: unknown): string {
  return JSON.stringify(isRecord(key) ? Object.entries(key).sort(([a], [b]) => (a < b ? -1 : 1)) : key);
}
