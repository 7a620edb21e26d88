/** The JSON of a patch as Istio reads it, which is more than proto3 JSON in one respect and stricter in two. */
import type { DescEnum, DescField, DescMessage, JsonValue, Registry } from "@bufbuild/protobuf";
import { parseDuration } from "@mizzen/go-text/duration";
import { isRecord } from "#lib/json/is-record.ts";

/** What is wrong in the value of a patch, in words that follow the name of its field. */
class PatchJsonError extends Error {}

const ANY = "google.protobuf.Any";
const DURATION = "google.protobuf.Duration";
/** Messages with a JSON form of their own, in which nothing is to be found. */
const OWN_FORM = "google.protobuf.";

/**
 * The value in plain proto3 JSON: durations such as `500ms` and `1h30m` become seconds. Throws a `PatchJsonError` where one is none,
 * where an enumeration has no such name, and where a packed message does not say its type.
 */
export function plainPatchJson(type: DescMessage, value: JsonValue, registry: Registry): JsonValue {
  return messageJson(type, value, { registry, path: "" });
}

interface Place {
  readonly registry: Registry;
  /** Where in the value; empty for all of it. */
  readonly path: string;
}

function messageJson(type: DescMessage, value: JsonValue, place: Place): JsonValue {
  if (type.typeName === DURATION) return durationJson(value, place);
  if (!isRecord(value)) return value;
  if (type.typeName === ANY) return anyJson(value, place);
  if (type.typeName.startsWith(OWN_FORM)) return value;
  const fields = fieldsOf(type);
  return mapped(value, place, (inner, at, name) => {
    const field = fields.get(name);
    return field === undefined ? inner : fieldJson(field, inner, at);
  });
}

const knownFields = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>();

/** By both of their names. */
function fieldsOf(type: DescMessage): ReadonlyMap<string, DescField> {
  const known =
    knownFields.get(type) ??
    new Map(type.fields.flatMap((field) => [field.name, field.jsonName].map((name) => [name, field])));
  knownFields.set(type, known);
  return known;
}

function fieldJson(field: DescField, value: JsonValue, place: Place): JsonValue {
  const one = (inner: JsonValue, at: Place) => {
    if (field.message !== undefined) return messageJson(field.message, inner, at);
    return field.enum === undefined ? inner : enumJson(field.enum, inner, at);
  };
  if (field.fieldKind === "map") return isRecord(value) ? mapped(value, place, one) : value;
  if (field.fieldKind !== "list") return one(value, place);
  if (!Array.isArray(value)) return value;
  return value.map((inner, i) => one(inner, { ...place, path: `${place.path}[${i}]` }));
}

/** What is packed has the fields of its type beside `@type`. */
function anyJson(value: Readonly<Record<string, JsonValue>>, place: Place): JsonValue {
  const { "@type": typeUrl } = value;
  if (typeof typeUrl !== "string" || typeUrl === "")
    throw new PatchJsonError(`has no "@type" in ${place.path}, which says what is configured`);
  const type = place.registry.getMessage(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
  return type === undefined || type.typeName.startsWith(OWN_FORM) ? value : messageJson(type, value, place);
}

function durationJson(value: JsonValue, { path }: Place): JsonValue {
  if (typeof value !== "string") return value;
  const millis = parseDuration(value);
  if (millis === undefined)
    throw new PatchJsonError(`has "${value}" in ${path}, which must be a duration such as "1.5s" or "250ms"`);
  return `${(millis / 1000).toFixed(9)}s`;
}

function enumJson({ values }: DescEnum, value: JsonValue, { path }: Place): JsonValue {
  if (typeof value !== "string" || values.some(({ name }) => name === value)) return value;
  const names = values.map(({ name }) => name).join(", ");
  throw new PatchJsonError(`has "${value}" in ${path}, which must be one of ${names}`);
}

function mapped(
  value: Readonly<Record<string, JsonValue>>,
  { registry, path }: Place,
  change: (inner: JsonValue, at: Place, name: string) => JsonValue,
): JsonValue {
  const inside = (name: string) => ({ registry, path: path === "" ? name : `${path}.${name}` });
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, change(inner, inside(name), name)]));
}
