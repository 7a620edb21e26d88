/** Sprig's functions on values of any kind: defaults, kinds, JSON; and those of Istio's templates. */
import { isDeepStrictEqual } from "node:util";
import { textArgument as text } from "../functions.ts";
import { CallError } from "../template-error.ts";
import { type Callable, fromValue, isTrue, kindName, toValue, typeName, type Value } from "../value.ts";
import { yamlText } from "../yaml-text.ts";
import { directoryOf } from "./paths.ts";

export const DATA_FUNCTIONS: Readonly<Record<string, Callable>> = {
  default: (fallback, ...values) => (values.length > 0 && isTrue(values[0]) ? values[0] : fallback),
  valueOrDefault: (value, fallback) => (isTrue(value) ? value : fallback),
  empty: (value) => !isTrue(value),
  coalesce: (...values) => values.find(isTrue) ?? null,
  all: (...values) => values.every(isTrue),
  any: (...values) => values.some(isTrue),
  ternary: (yes, no, condition) => {
    if (typeof condition !== "boolean")
      throw new CallError(`wrong type for value; expected bool; got ${typeName(condition)}`);
    return condition ? yes : no;
  },
  fail: (message) => {
    throw new CallError(text(message));
  },
  kindOf: kindName,
  kindIs: (kind, value) => kindName(value) === text(kind),
  typeOf: typeName,
  typeIs: (type, value) => typeName(value) === text(type),
  typeIsLike: (type, value) => [text(type), `*${text(type)}`].includes(typeName(value)),
  deepEqual: (a, b) => isDeepStrictEqual(a, b),
  toJson: goJson,
  mustToJson: goJson,
  toRawJson: (value) => json(value),
  mustToRawJson: (value) => json(value),
  toPrettyJson: (value) => json(value, "  "),
  mustToPrettyJson: (value) => json(value, "  "),
  toJSON: (value) => (value === null || value === undefined ? "{}" : goJson(value)),
  structToJSON: (value) => (value === null || value === undefined ? "{}" : goJson(value)),
  protoToJSON: (value) => (value === null || value === undefined ? "{}" : goJson(value)),
  toJsonMap: (...maps) => goJson(Object.assign({}, ...maps.map((map) => fromValue(map)))),
  fromJson: (value) => parsedJson(text(value)) ?? null,
  fromJSON: (value) => mustParse(text(value)),
  mustFromJson: (value) => mustParse(text(value)),
  toYaml: (value) => yamlText(fromValue(value)).trimEnd(),
  directory: (path) => directoryOf(text(path)),
};

/** As Go's encoder: keys sorted, and letters that HTML gives a meaning to as codes. */
function goJson(value: Value): string {
  return json(value).replace(
    /[<>&\u2028\u2029]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function json(value: Value, space?: string): string {
  return JSON.stringify(sortedData(fromValue(value)), undefined, space);
}

function sortedData(data: unknown): unknown {
  if (Array.isArray(data)) return data.map(sortedData);
  if (typeof data !== "object" || data === null) return data;
  const entries = Object.entries(data).map(([key, item]) => [key, sortedData(item)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function parsedJson(source: string): Value {
  try {
    return toValue(JSON.parse(source));
  } catch {
    return undefined; // Sprig gives nothing for what is no JSON
  }
}

function mustParse(source: string): Value {
  const value = parsedJson(source);
  if (value === undefined) throw new CallError(`not JSON: ${source}`);
  return value;
}
