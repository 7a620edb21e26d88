/** Envoy refuses a listener of which two chains take the same connections: the first one keeps them. */
import { rangeKey } from "../wire/cidr.ts";

/** Which connections a chain takes; empty lists take any. */
export interface ChainMatch {
  readonly serverNames: readonly string[];
  readonly ranges: readonly string[];
}

/** What the chains of a listener take so far. */
export type Taken = Set<string>;

/** Takes what is free of the match, and gives it back: the names of others are left out of it, or their ranges. */
export function takeFree(taken: Taken, match: ChainMatch): ChainMatch | undefined {
  const names = distinct(match.serverNames.includes("*") ? [] : match.serverNames, (name) => name.toLowerCase());
  const ranges = distinct(match.ranges, rangeKey);
  const isFree = (name: Item, range: Item) => !taken.has(`${name.key} ${range.key}`);
  const freeNames = names.filter((name) => ranges.every((range) => isFree(name, range)));
  const freeRanges = ranges.filter((range) => names.every((name) => isFree(name, range)));
  const left = freeNames.length > 0 ? { names: freeNames, ranges } : { names, ranges: freeRanges };
  if (left.ranges.length === 0) return undefined;
  for (const name of left.names) for (const range of left.ranges) taken.add(`${name.key} ${range.key}`);
  return { serverNames: valuesOf(left.names, match.serverNames), ranges: valuesOf(left.ranges, match.ranges) };
}

interface Item {
  /** Equal for values that mean the same. */
  readonly key: string;
  readonly value: string;
}

const ANY: Item = { key: "", value: "" };

/** Each value once, without those that have no key. No values mean any. */
function distinct(values: readonly string[], keyOf: (value: string) => string | undefined): readonly Item[] {
  const byKey = new Map<string, Item>();
  for (const value of values) {
    const key = keyOf(value);
    if (key !== undefined && !byKey.has(key)) byKey.set(key, { key, value });
  }
  return byKey.size === 0 ? [ANY] : [...byKey.values()];
}

/** The given list itself where nothing was left out of it. */
function valuesOf(left: readonly Item[], given: readonly string[]): readonly string[] {
  return left.includes(ANY) || left.length === given.length ? given : left.map(({ value }) => value);
}
