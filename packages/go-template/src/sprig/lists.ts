/** Sprig's functions on lists. */
import { isDeepStrictEqual } from "node:util";
import { wholeArgument } from "../functions.ts";
import { CallError } from "../template-error.ts";
import { type Callable, isList, isMap, isTrue, itemOf, kindName, typeName, type Value } from "../value.ts";

const STRICT: Readonly<Record<string, Callable>> = {
  first: (list) => listOf("first", list)[0],
  last: (list) => listOf("last", list).at(-1),
  rest: (list) => listOf("rest", list).slice(1),
  initial: (list) => listOf("initial", list).slice(0, -1),
  append: (list, item) => [...listOf("push", list), item],
  push: (list, item) => [...listOf("push", list), item],
  prepend: (list, item) => [item, ...listOf("prepend", list)],
  concat: (...lists) => lists.flatMap((list) => listOf("concat", list)),
  reverse: (list) => listOf("reverse", list).toReversed(),
  compact: (list) => listOf("compact", list).filter(isTrue),
  uniq: (list) => unique(listOf("uniq", list)),
  without: (list, ...items) => listOf("without", list).filter((item) => !has(items, item)),
  has: (item, list) => (list === null || list === undefined ? false : has(listOf("has", list), item)),
  chunk: (size, list) => chunks(listOf("chunk", list), wholeArgument(size)),
  slice: (list, start = 0n, end) => sliceOf(list, wholeArgument(start), end),
};

/** With `must`, Sprig's functions refuse what they otherwise panic on, which is the same to a template. */
export const LIST_FUNCTIONS: Readonly<Record<string, Callable>> = {
  ...STRICT,
  ...Object.fromEntries(
    Object.entries(STRICT).map(([name, call]) => [`must${name.charAt(0).toUpperCase()}${name.slice(1)}`, call]),
  ),
  list: (...items) => items,
  tuple: (...items) => items,
  pluck: (key, ...maps) =>
    maps.filter(isMap).flatMap((map) => {
      const item = itemOf(map, String(key));
      return item === undefined ? [] : [item];
    }),
};

function listOf(name: string, value: Value): readonly Value[] {
  if (isList(value)) return value;
  throw new CallError(`Cannot ${name} on type ${typeName(value)}`);
}

/** Unlike the `slice` of templates without Sprig it takes lists only. */
function sliceOf(value: Value, start: number, last: Value): Value {
  if (!isList(value)) throw new CallError(`list should be type of slice or array but ${kindName(value)}`);
  if (value.length === 0) return null;
  const end = last === undefined ? value.length : wholeArgument(last);
  if (start < 0 || end > value.length || start > end) throw new CallError("slice index out of bounds");
  return value.slice(start, end);
}

function has(list: readonly Value[], item: Value): boolean {
  return list.some((one) => isDeepStrictEqual(one, item));
}

/** Plain values, which most lists hold, are not compared one by one. */
function unique(list: readonly Value[]): readonly Value[] {
  const plain = new Set<Value>();
  const others: Value[] = [];
  return list.filter((item) => {
    if (typeof item !== "object" || item === null) return plain.size < plain.add(item).size;
    return !has(others, item) && others.push(item) > 0;
  });
}

function chunks(list: readonly Value[], size: number): readonly Value[] {
  if (size < 1) throw new CallError("the size of a chunk must be above 0");
  return Array.from({ length: Math.ceil(list.length / size) }, (_, index) =>
    list.slice(index * size, (index + 1) * size),
  );
}
