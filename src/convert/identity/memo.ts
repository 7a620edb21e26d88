/**
 * The only memory of this folder: values derived from immutable objects, kept as long as these. It makes a snapshot cheap
 * and changes no result.
 */
import type { Steps } from "#lib/async/steps.ts";
import { listChanges } from "#lib/collections/list-changes.ts";
import { hasSameItems } from "#lib/collections/same-items.ts";

/**
 * A function that is called again for an object only when one of its other inputs differs from the last time. Inputs are
 * equal when they are identical, lists when their items are.
 */
export function memoized<Owner extends object, Inputs extends readonly unknown[], Value>(
  make: (owner: Owner, ...inputs: Inputs) => Value,
): (owner: Owner, ...inputs: Inputs) => Value {
  const last = new WeakMap<Owner, { readonly inputs: Inputs; readonly value: Value }>();
  return (owner, ...inputs) => {
    const known = last.get(owner);
    if (known !== undefined && hasSameInputs(known.inputs, inputs)) return known.value;
    const value = make(owner, ...inputs);
    last.set(owner, { inputs, value });
    return value;
  };
}

/** The same for a function in steps. */
export function memoizedSteps<Owner extends object, Inputs extends readonly unknown[], Value>(
  make: (owner: Owner, ...inputs: Inputs) => Steps<Value>,
): (owner: Owner, ...inputs: Inputs) => Steps<Value> {
  const last = new WeakMap<Owner, { readonly inputs: Inputs; readonly value: Value }>();
  return function* (owner, ...inputs) {
    const known = last.get(owner);
    if (known !== undefined && hasSameInputs(known.inputs, inputs)) return known.value;
    const value = yield* make(owner, ...inputs);
    last.set(owner, { inputs, value });
    return value;
  };
}

/**
 * A function from a list and its former result to its new result, which is the former one if the items are the same. It is
 * told the items that the former result was made from, where these are known. Settings are the same for all that is derived
 * from one result.
 */
export function madeFrom<Item, Result extends object, Settings extends readonly unknown[]>(
  make: (
    previous: Result,
    items: readonly Item[],
    before: readonly Item[] | undefined,
    ...settings: Settings
  ) => Result,
): (previous: Result, items: readonly Item[], ...settings: Settings) => Result {
  const itemsOf = new WeakMap<Result, readonly Item[]>();
  return (previous, items, ...settings) => {
    const before = itemsOf.get(previous);
    if (before !== undefined && hasSameItems(before, items)) return previous;
    const result = make(previous, items, before, ...settings);
    itemsOf.set(result, items);
    return result;
  };
}

/** A list, and what was made of each of its items. */
export interface Mapped<Item, Value> {
  readonly items: readonly Item[];
  readonly values: readonly Value[];
}

/** What is made of each item, as the last time for items that were there, as long as they stand in the same order. */
export function* mappedAfter<Item, Value>(
  last: Mapped<Item, Value>,
  items: readonly Item[],
  make: (item: Item) => Value,
): Steps<readonly Value[]> {
  const gone = new Set(listChanges(last.items, items).removed);
  const values: Value[] = [];
  let i = 0;
  for (const item of items) {
    while (i < last.items.length && gone.has(last.items[i] as Item)) i++;
    if (i < last.items.length && last.items[i] === item) {
      values.push(last.values[i++] as Value);
    } else {
      values.push(make(item));
      yield;
    }
  }
  return values;
}

/**
 * The map of a list after changes of the list; the same map where it holds the same. Undefined where two items of the list
 * have, or had, one key: then the changes do not tell which of them counts.
 */
export function changedMap<Item, Key, Value>(
  map: ReadonlyMap<Key, Value>,
  { before, after }: { readonly before: readonly Item[]; readonly after: readonly Item[] },
  entryOf: (item: Item) => readonly [Key, Value],
): ReadonlyMap<Key, Value> | undefined {
  if (map.size !== before.length) return undefined;
  const changes = listChanges(before, after);
  // Those for which nothing has come.
  const removed = new Set(changes.removed.map((item) => entryOf(item)[0]));
  const added = changes.added.map(entryOf);
  const isKept = added.every(([key, value]) => removed.delete(key) && Object.is(map.get(key), value));
  if (isKept && removed.size === 0) return map;
  const next = new Map(map);
  for (const item of changes.removed) next.delete(entryOf(item)[0]);
  for (const [key, value] of added) next.set(key, value);
  return next.size === after.length ? next : undefined;
}

/** A loop, because it is asked for each object of a mesh after each change. */
function hasSameInputs(last: readonly unknown[], inputs: readonly unknown[]): boolean {
  for (let i = 0; i < inputs.length; i++) if (!isSame(last[i], inputs[i])) return false;
  return last.length === inputs.length;
}

/** Whether two inputs are identical, or lists of the same objects. */
export function isSame(a: unknown, b: unknown): boolean {
  return Object.is(a, b) || (Array.isArray(a) && Array.isArray(b) && hasSameItems(a, b));
}
