/** Sprig's functions on maps. `set`, `unset` and the merges change their first map, as templates rely on. */
import { textArgument as text } from "../functions.ts";
import { CallError } from "../template-error.ts";
import {
  type Callable,
  entriesOf,
  hasKey,
  isList,
  isMap,
  isTrue,
  itemOf,
  TextMap,
  typeName,
  type Value,
  type ValueMap,
} from "../value.ts";
import { strval } from "./text.ts";

export const MAP_FUNCTIONS: Readonly<Record<string, Callable>> = {
  dict: (...pairs) =>
    Object.fromEntries(
      Array.from({ length: Math.ceil(pairs.length / 2) }, (_, index) => [
        strval(pairs[2 * index]),
        2 * index + 1 < pairs.length ? pairs[2 * index + 1] : "",
      ]),
    ),
  get: (map, key) => itemOf(mapOf(map), text(key)) ?? "",
  set: (map, key, item) => changed(map, { ...plainMap(map), [text(key)]: item }),
  unset: (map, key) => changed(map, without(map, [text(key)])),
  hasKey: (map, key) => hasKey(mapOf(map), text(key)),
  isset: (map, key) => map !== null && map !== undefined && hasKey(mapOf(map), text(key)),
  keys: (...maps) => maps.flatMap((map) => (entriesOf(mapOf(map)) ?? []).map(([key]) => key)),
  values: (map) => (entriesOf(mapOf(map)) ?? []).map(([, item]) => item),
  pick: (map, ...keys) => {
    const wanted = keys.map(text);
    return Object.fromEntries((entriesOf(mapOf(map)) ?? []).filter(([key]) => wanted.includes(key)));
  },
  omit: (map, ...keys) => without(map, keys.map(text)),
  omitNil: (map) => withoutNil(mapOf(map)),
  merge,
  mustMerge: merge,
  mergeOverwrite,
  mustMergeOverwrite: mergeOverwrite,
  mergeMaps: (...maps) => Object.assign({}, ...maps.filter(isMap).map(plainMap)),
  strdict: (...pairs) =>
    new TextMap(
      Object.fromEntries(
        Array.from({ length: pairs.length / 2 }, (_, index) => [
          strval(pairs[2 * index]),
          strval(pairs[2 * index + 1]),
        ]),
      ),
    ),
  deepCopy: copied,
  mustDeepCopy: copied,
  dig: (...args) => dug(args),
};

function merge(first: Value, ...others: readonly Value[]): Value {
  return changed(first, others.map(plainMap).reduce(filled, plainMap(first)));
}

function mergeOverwrite(first: Value, ...others: readonly Value[]): Value {
  return changed(first, others.map(plainMap).reduce(overwritten, plainMap(first)));
}

/** What is changed in the copy stays as it is in the original. */
function copied(value: Value): Value {
  if (isList(value)) return value.map(copied);
  if (!isMap(value) || value instanceof TextMap) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copied(item)]));
}

function mapOf(value: Value): ValueMap | TextMap {
  if (isMap(value)) return value;
  throw new CallError(`wrong type for value; expected map[string]interface {}; got ${typeName(value)}`);
}

function plainMap(value: Value): ValueMap {
  return Object.fromEntries(entriesOf(mapOf(value)) ?? []);
}

function without(map: Value, keys: readonly string[]): ValueMap {
  return Object.fromEntries((entriesOf(mapOf(map)) ?? []).filter(([key]) => !keys.includes(key)));
}

function withoutNil(map: ValueMap | TextMap): Value {
  const entries = (entriesOf(map) ?? []).filter(([, item]) => item !== null && item !== undefined);
  return Object.fromEntries(entries.map(([key, item]) => [key, isMap(item) ? withoutNil(item) : item]));
}

/** Gives a map the content of another. A map of texts cannot hold it and stays as it is. */
function changed(map: Value, content: ValueMap): Value {
  if (!isMap(map) || map instanceof TextMap) return content;
  const target: Record<string, Value> = map;
  for (const key of Object.keys(target)) delete target[key];
  for (const [key, value] of Object.entries(content))
    Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
  return target;
}

/** What is there stays, unless it is empty. */
function filled(there: ValueMap, more: ValueMap): ValueMap {
  return combined(there, more, (old) => !isTrue(old));
}

/** What comes later wins. */
function overwritten(there: ValueMap, more: ValueMap): ValueMap {
  return combined(there, more, () => true);
}

function combined(there: ValueMap, more: ValueMap, replaces: (old: Value) => boolean): ValueMap {
  const result: Record<string, Value> = { ...there };
  for (const [key, item] of Object.entries(more)) {
    const old = result[key];
    if (isMap(item) && isMap(old)) result[key] = combined(plainMap(old), plainMap(item), replaces);
    else if (old === undefined || replaces(old)) result[key] = item;
  }
  return result;
}

/** `dig "a" "b" DEFAULT MAP` */
function dug(args: readonly Value[]): Value {
  if (args.length < 3) throw new CallError("dig needs at least three arguments");
  let value: Value = args.at(-1);
  for (const key of args.slice(0, -2).map(text)) {
    if (!isMap(value) || !hasKey(value, key)) return args.at(-2);
    value = itemOf(value, key);
  }
  return value;
}
