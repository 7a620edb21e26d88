/**
 * The only memory of this folder: values derived from immutable lists and objects of a snapshot, kept no longer than these.
 * They make planning cheap and change no result.
 */
import type { Steps } from "#lib/async/steps.ts";
import { hasSameItems } from "#lib/collections/same-items.ts";

/**
 * A function of snapshot objects and one text, computed once per distinct set of them. Snapshots share what did not change,
 * so the value survives as long as its sources do. For few sources: each combination costs a WeakMap.
 */
export function derived<From extends readonly object[], Value>(
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

interface Shelf {
  readonly next: WeakMap<object, Shelf>;
  readonly values: Map<string, unknown>;
}

function emptyShelf(): Shelf {
  return { next: new WeakMap(), values: new Map() };
}

/**
 * The last value made for an object under a key, as long as everything else it was made from is the same too. Together,
 * `key`, `owner` and `from` have to name all that `make` reads.
 */
export function kept<Value>(owner: object, key: string, from: readonly unknown[], make: () => Value): Value {
  const values = keptOf(owner);
  const known = values.get(key);
  if (known !== undefined && hasSameItems(known.from, from)) return known.value as Value;
  const value = make();
  values.set(key, { from, value });
  return value;
}

/** The same for a value that is made in steps. */
export function* keptSteps<Value>(
  owner: object,
  { key, from }: { readonly key: string; readonly from: readonly unknown[] },
  make: () => Steps<Value>,
): Steps<Value> {
  const values = keptOf(owner);
  const known = values.get(key);
  if (known !== undefined && hasSameItems(known.from, from)) return known.value as Value;
  const value = yield* make();
  values.set(key, { from, value });
  return value;
}

/** As `kept`, for a value that can be made from the one before: `make` is told that one, and what it was made from. */
export function revised<From extends readonly unknown[], Value>(
  owner: object,
  { key, from }: { readonly key: string; readonly from: From },
  make: (last: { readonly from: From; readonly value: Value } | undefined) => Value,
): Value {
  const values = keptOf(owner);
  const known = values.get(key) as { readonly from: From; readonly value: Value } | undefined;
  if (known !== undefined && hasSameItems(known.from, from)) return known.value;
  const value = make(known);
  values.set(key, { from, value });
  return value;
}

/**
 * A state that is too large to be made again: `follow` changes it in place to what the sources of today say. Nobody else has
 * it meanwhile, and nobody ever will if that fails.
 */
export function* followed<State>(
  owner: object,
  key: string,
  follow: (last: State | undefined) => Steps<State>,
): Steps<State> {
  const values = keptOf(owner);
  const known = values.get(key);
  values.delete(key);
  const state = yield* follow(known?.value as State | undefined);
  values.set(key, { from: [], value: state });
  return state;
}

function keptOf(owner: object): Map<string, Kept> {
  let values = KEPT.get(owner);
  if (values === undefined) {
    values = new Map();
    KEPT.set(owner, values);
  }
  return values;
}

interface Kept {
  readonly from: readonly unknown[];
  readonly value: unknown;
}

const KEPT = new WeakMap<object, Map<string, Kept>>();

/**
 * One object for all equal plain values, as long as `owner` lives: inputs of builders are compared by identity, so what a
 * view computes anew for each proxy has to be the same object for equal proxies.
 */
export function interned<Value extends object>(owner: object, value: Value): Value {
  return kept(owner, `interned ${JSON.stringify(value)}`, [], () => value);
}
