/** What differs between two lists of which most items are the very same objects, and how to change a sorted list by that. */

/** Items that only one of two lists has. */
export interface ListChanges<Item> {
  readonly removed: readonly Item[];
  readonly added: readonly Item[];
}

/** By identity. Where the lists have the same items in the same places, a look at each item is all it costs. */
export function listChanges<Item>(before: readonly Item[], after: readonly Item[]): ListChanges<Item> {
  if (before === after) return { removed: [], added: [] };
  const [removed, added] = before.length === after.length ? replaced(before, after) : between(before, after);
  if (removed.length === 0 || added.length === 0) return { removed, added };
  // What merely moved is in both.
  const [old, next] = [new Set(removed), new Set(added)];
  return { removed: removed.filter((item) => !next.has(item)), added: added.filter((item) => !old.has(item)) };
}

/** The items of places where the two differ. */
function replaced<Item>(before: readonly Item[], after: readonly Item[]): readonly [Item[], Item[]] {
  const [removed, added]: [Item[], Item[]] = [[], []];
  for (let i = 0; i < before.length; i++) {
    if (before[i] === after[i]) continue;
    removed.push(before[i] as Item);
    added.push(after[i] as Item);
  }
  return [removed, added];
}

/** The items between what both begin with and what both end with. */
function between<Item>(before: readonly Item[], after: readonly Item[]): readonly [Item[], Item[]] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let end = 0;
  while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  return [before.slice(start, before.length - end), after.slice(start, after.length - end)];
}

/** An item, and what stands in its place now. */
export type Replacement<Item> = readonly [Item, Item];

/** What stands in the places of others, where lists differ in nothing but few places; else undefined. */
export function replacements<Item>(
  before: readonly Item[],
  after: readonly Item[],
): readonly Replacement<Item>[] | undefined {
  if (before.length !== after.length) return undefined;
  const found: Replacement<Item>[] = [];
  for (let i = 0; i < before.length; i++) {
    if (before[i] === after[i]) continue;
    if (found.length === MANY) return undefined;
    found.push([before[i] as Item, after[i] as Item]);
  }
  return found;
}

/** A list after replacements; undefined where it does not have what is replaced. */
export function withReplacements<Item>(
  list: readonly Item[],
  replaced: readonly Replacement<Item>[],
): readonly Item[] | undefined {
  if (replaced.length === 0) return list;
  const places = replaced.map(([item]) => list.indexOf(item));
  if (places.includes(-1)) return undefined;
  const next = [...list];
  for (const [i, [, item]] of replaced.entries()) next[places[i] ?? -1] = item;
  return next;
}

/** A list that is in order, after changes; the same list where there are none. Items that are equal in order keep theirs. */
export function changedSorted<Item>(
  sorted: readonly Item[],
  { removed, added }: ListChanges<Item>,
  order: (a: Item, b: Item) => number,
): readonly Item[] {
  if (removed.length === 0 && added.length === 0) return sorted;
  const left = without(sorted, removed);
  if (added.length > MANY) return [...left, ...added].sort(order);
  for (const item of added) left.splice(placeFor(item, left, order), 0, item);
  return left;
}

/** For more than that it is better to look at everything once. */
const MANY = 16;

/** A copy without these items. */
function without<Item>(list: readonly Item[], items: readonly Item[]): Item[] {
  if (items.length > MANY) {
    const gone = new Set(items);
    return list.filter((item) => !gone.has(item));
  }
  const left = [...list];
  for (const item of items) {
    const place = left.indexOf(item);
    if (place !== -1) left.splice(place, 1);
  }
  return left;
}

/** After all that come before it or at the same place. */
function placeFor<Item>(item: Item, sorted: readonly Item[], order: (a: Item, b: Item) => number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (order(sorted[middle] as Item, item) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
