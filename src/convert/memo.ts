/**
 * The only memory of this folder: values derived from immutable objects, kept as long as these. It makes a snapshot cheap
 * and changes no result.
 */

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
    if (known?.inputs.every((input, i) => isSame(input, inputs[i]))) return known.value;
    const value = make(owner, ...inputs);
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

/** Whether two inputs are identical, or lists of the same objects. */
export function isSame(a: unknown, b: unknown): boolean {
  return Object.is(a, b) || (Array.isArray(a) && Array.isArray(b) && hasSameItems(a, b));
}

/** Whether two lists hold the same objects in the same order. */
export function hasSameItems(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a === b) return true;
  return a.length === b.length && a.every((item, i) => Object.is(item, b[i]));
}
