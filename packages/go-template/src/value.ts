/**
 * Values of Go in JavaScript, as far as templates can tell them apart:
 *
 *   string, boolean             string, bool
 *   bigint                      any whole number type
 *   number                      float64, also what Go reads from JSON
 *   null                        nil
 *   undefined                   no value at all: what a missing key of a map gives
 *   array                       slice
 *   plain object                map[string]any
 *   TextMap                     map[string]string, of which `index` gives "" for a missing key
 *   Struct                      struct or pointer to one: fields, and functions as methods
 *   function                    func
 */

/** A value that a template can hold. */
export type Value =
  | string
  | boolean
  | bigint
  | number
  | null
  | undefined
  | readonly Value[]
  | ValueMap
  | TextMap
  | Struct
  | Callable;

/** A map[string]any. */
export interface ValueMap {
  readonly [key: string]: Value;
}

/** A function of Go: it gives its result or throws. */
export type Callable = (...args: readonly Value[]) => Value;

/** A map[string]string. */
export class TextMap {
  readonly entries: ReadonlyMap<string, string>;

  constructor(entries: Readonly<Record<string, string>>) {
    this.entries = new Map(Object.entries(entries));
  }
}

/** What a struct is besides its fields. */
export interface StructTraits {
  /** How it is written as JSON, when that differs from its fields. */
  readonly json?: unknown;
  /** What its method `String` gives, which is how it prints. */
  readonly text?: string;
  /** A nil pointer: its methods can be called, and it counts as false. */
  readonly isNil?: boolean;
}

/** A struct or a pointer to one. Fields that are functions are its methods. */
export class Struct {
  readonly type: string;
  readonly fields: ReadonlyMap<string, Value>;
  readonly traits: StructTraits;

  constructor(type: string, fields: Readonly<Record<string, Value>>, traits: StructTraits = {}) {
    this.type = type;
    this.fields = new Map(Object.entries(fields));
    this.traits = traits;
  }
}

/** Turns JSON, or anything like it, into values; numbers become floats, as in Go. */
export function toValue(data: unknown): Value {
  if (data === null || data === undefined) return null;
  if (Array.isArray(data)) return data.map(toValue);
  if (isPlainObject(data)) return Object.fromEntries(Object.entries(data).map(([key, item]) => [key, toValue(item)]));
  if (["string", "boolean", "number", "bigint", "function"].includes(typeof data)) return data as Value;
  if (data instanceof TextMap || data instanceof Struct) return data;
  throw new TypeError(`a template cannot hold ${String(data)}`);
}

/** Turns a value into data that JSON can hold. */
export function fromValue(value: Value): unknown {
  if (typeof value === "bigint") return Number(value);
  if (isList(value)) return value.map(fromValue);
  if (value instanceof Struct && "json" in value.traits) return value.traits.json;
  const map = entriesOf(value);
  if (map !== undefined) return Object.fromEntries(map.map(([key, item]) => [key, fromValue(item)]));
  return value ?? null;
}

/** True for a slice. */
export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** True for a map of any kind. */
export function isMap(value: Value): value is ValueMap | TextMap {
  return value instanceof TextMap || (isPlainObject(value) && !(value instanceof Struct));
}

/** Entries of a map or struct by sorted key; undefined for other values. */
export function entriesOf(value: Value): [key: string, item: Value][] | undefined {
  if (value instanceof TextMap) return sorted([...value.entries]);
  if (value instanceof Struct) return [...value.fields].filter(([, field]) => typeof field !== "function");
  return isPlainObject(value) ? sorted(Object.entries(value as ValueMap)) : undefined;
}

/** The item of a map by its key; undefined when it is missing from a map[string]any. */
export function itemOf(map: ValueMap | TextMap, key: string): Value {
  if (map instanceof TextMap) return map.entries.get(key) ?? "";
  return Object.hasOwn(map, key) ? map[key] : undefined;
}

/** True when a map has a key. */
export function hasKey(map: ValueMap | TextMap, key: string): boolean {
  return map instanceof TextMap ? map.entries.has(key) : Object.hasOwn(map, key);
}

/** What `if` asks: false for false, 0, nil and whatever is empty. */
export function isTrue(value: Value): boolean {
  if (value instanceof Struct) return !value.traits.isNil;
  if (isList(value)) return value.length > 0;
  if (isMap(value)) return value instanceof TextMap ? value.entries.size > 0 : Object.keys(value).length > 0;
  return Boolean(value);
}

/** The name of a value's type in Go. */
export function typeName(value: Value): string {
  if (value === null || value === undefined) return "<nil>";
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "bigint") return "int";
  if (typeof value === "number") return "float64";
  if (typeof value === "function") return "func";
  if (isList(value)) return "[]interface {}";
  if (value instanceof TextMap) return "map[string]string";
  return value instanceof Struct ? value.type : "map[string]interface {}";
}

/** The kind of a value's type in Go. */
export function kindName(value: Value): string {
  if (value === null || value === undefined) return "invalid";
  if (isList(value)) return "slice";
  if (isMap(value)) return "map";
  return value instanceof Struct ? "struct" : typeName(value);
}

/** Bytes of a string, by which Go counts. */
export function bytesOf(text: string): Buffer {
  return Buffer.from(text, "utf8");
}

function sorted<T>(entries: [string, T][]): [string, T][] {
  return entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
