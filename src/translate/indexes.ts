/**
 * The only memory of this folder: values derived from immutable lists and objects of a snapshot, kept exactly as long as
 * what they were derived from. They make planning cheap and change no result.
 */

/** Sources of a derived value: objects and lists that a snapshot holds. */
type Sources = readonly object[];

interface Shelf {
  readonly next: WeakMap<object, Shelf>;
  readonly values: Map<string, unknown>;
}

/**
 * A function of snapshot objects and one text, computed once per distinct set of them. Snapshots share what did not change,
 * so the value survives as long as its sources do.
 */
export function derived<From extends Sources, Value>(
  make: (key: string, ...from: From) => Value,
): (key: string, ...from: From) => Value {
  const root = emptyShelf();
  return (key, ...from) => {
    let shelf = root;
    for (const source of from) {
      let next = shelf.next.get(source);
      if (next === undefined) {
        next = emptyShelf();
        shelf.next.set(source, next);
      }
      shelf = next;
    }
    if (!shelf.values.has(key)) shelf.values.set(key, make(key, ...from));
    return shelf.values.get(key) as Value;
  };
}

/** As `derived`, for a value that is made on the spot: `key` has to name everything `make` depends on besides `owner`. */
export function kept<Value>(owner: object, key: string, make: () => Value): Value {
  const values = keptValues("", owner);
  if (!values.has(key)) values.set(key, make());
  return values.get(key) as Value;
}

const keptValues = derived((_: string, __: object) => new Map<string, unknown>());

function emptyShelf(): Shelf {
  return { next: new WeakMap(), values: new Map() };
}

/**
 * One object for all equal plain values, as long as `owner` lives: inputs of builders are compared by identity, so what a
 * view computes anew for each proxy has to be the same object for equal proxies.
 */
export function interned<Value extends object>(owner: object, value: Value): Value {
  return kept(owner, JSON.stringify(value), () => value);
}
