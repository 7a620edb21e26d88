/**
 * Kubernetes' strategic merge: a patch that looks like the object it changes. Fields of objects are merged, null removes a
 * field, lists are replaced, except those the API's types merge: objects by a key (containers by name), scalars as a set.
 *
 * Directives in the patch change that: `$patch: replace|delete`, `$retainKeys`, `$deleteFromPrimitiveList/LIST` and
 * `$setElementOrder/LIST`.
 */
import { isRecord } from "#lib/json/is-record.ts";
import { FieldError, type JsonObject } from "./canonical.ts";
import { fieldOf, type Kind } from "./type-table.ts";

const PATCH = "$patch";
const RETAIN_KEYS = "$retainKeys";
const DELETE_FROM = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER = "$setElementOrder/";

/** The object with the patch laid over it; neither is changed. Throws a `FieldError`. */
export function strategicMerge(type: string, original: JsonObject, patch: JsonObject): JsonObject {
  return mergeObject({ is: "type", type }, original, patch);
}

/** A field inside an object: what it holds, and the key by which a list of it is merged. */
interface Place {
  readonly kind: Kind | undefined;
  readonly mergeKey: string | undefined;
  readonly name: string;
}

function mergeObject(kind: Kind | undefined, original: JsonObject, patch: JsonObject): JsonObject {
  const directive = patch[PATCH];
  if (directive === "replace") return omitKeys(patch, [PATCH]);
  if (directive === "delete") return {};
  if (directive !== undefined)
    throw new FieldError(PATCH, `must be replace or delete, not ${JSON.stringify(directive)}`);
  const result: Record<string, unknown> = { ...retained(original, patch) };
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith(DELETE_FROM)) removeFrom(result, key.slice(DELETE_FROM.length), value);
    else if (value === null) delete result[key];
    else if (!key.startsWith("$")) result[key] = mergeField(placeOf(kind, key), result[key], value);
  }
  for (const [key, order] of Object.entries(patch)) {
    if (key.startsWith(ELEMENT_ORDER)) reorder(placeOf(kind, key.slice(ELEMENT_ORDER.length)), result, order);
  }
  return result;
}

/** Nothing but the keys that the patch retains. */
function retained(original: JsonObject, patch: JsonObject): JsonObject {
  const keys = patch[RETAIN_KEYS];
  if (keys === undefined) return original;
  if (!Array.isArray(keys)) throw new FieldError(RETAIN_KEYS, "must be a list of field names");
  const kept = new Set<unknown>(keys);
  const lost = Object.entries(patch).find(([key, value]) => !key.startsWith("$") && value !== null && !kept.has(key));
  if (lost !== undefined) throw new FieldError(RETAIN_KEYS, `must name "${lost[0]}", which the patch sets`);
  return Object.fromEntries(Object.entries(original).filter(([key]) => kept.has(key)));
}

function placeOf(kind: Kind | undefined, name: string): Place {
  const bare = kind?.is === "pointer" ? kind.of : kind;
  if (bare?.is !== "type") return { kind: undefined, mergeKey: undefined, name };
  const field = fieldOf(bare.type, name);
  return { kind: field?.kind, mergeKey: field?.mergeKey, name };
}

function mergeField(place: Place, original: unknown, patch: unknown): unknown {
  if (isRecord(original) && isRecord(patch)) return mergeObject(place.kind, original, patch);
  if (Array.isArray(original) && Array.isArray(patch) && place.mergeKey !== undefined)
    return mergeList(place, original, patch);
  return withoutDirectives(patch);
}

function mergeList(place: Place, original: readonly unknown[], patch: readonly unknown[]): readonly unknown[] {
  const { mergeKey = "" } = place;
  if (mergeKey === "") return inOrder(unique([...original, ...patch]), { original, patch, keyOf: (item) => item });
  const keyOf = (item: unknown) => keyIn(item, place.name, mergeKey);
  const additions = patch.filter((item) => !(isRecord(item) && PATCH in item));
  if (patch.some((item) => isRecord(item) && item[PATCH] === "replace")) return additions;
  const deleted = new Set(patch.filter((item) => isRecord(item) && item[PATCH] === "delete").map(keyOf));
  const kept = original.filter((item) => !deleted.has(keyOf(item)));
  const itemKind = place.kind?.is === "list" ? place.kind.of : undefined;
  const merged = [...kept];
  const places = placesOf(merged.map(keyOf));
  for (const item of additions) {
    const at = places.get(keyOf(item)) ?? merged.length;
    const before = merged[at];
    if (isRecord(before) && isRecord(item)) merged[at] = mergeObject(itemKind, before, item);
    else places.set(keyOf(item), merged.push(withoutDirectives(item)) - 1);
  }
  return inOrder(merged, { original: kept, patch: additions, keyOf });
}

function keyIn(item: unknown, list: string, mergeKey: string): unknown {
  if (isRecord(item) && Object.hasOwn(item, mergeKey)) return item[mergeKey];
  throw new FieldError(list, `has an item without "${mergeKey}", by which its items are merged`);
}

interface Orders {
  readonly original: readonly unknown[];
  readonly patch: readonly unknown[];
  readonly keyOf: (item: unknown) => unknown;
}

/**
 * Items of the patch in its order, the others in theirs. One of the others stands before an item of the patch only when it
 * stood before it in the original.
 */
function inOrder(merged: readonly unknown[], { original, patch, keyOf }: Orders): readonly unknown[] {
  const place = (list: readonly unknown[]) => {
    const places = placesOf(list.map(keyOf));
    return (item: unknown) => places.get(keyOf(item)) ?? -1;
  };
  const [inPatch, inOriginal] = [place(patch), place(original)];
  const patched = merged.filter((item) => inPatch(item) >= 0).sort((a, b) => inPatch(a) - inPatch(b));
  const others = merged.filter((item) => inPatch(item) < 0).sort((a, b) => inOriginal(a) - inOriginal(b));
  const result: unknown[] = [];
  let next = 0;
  for (const item of patched) {
    const at = inOriginal(item);
    for (; at >= 0 && next < others.length && inOriginal(others[next]) < at; next++) result.push(others[next]);
    result.push(item);
  }
  return [...result, ...others.slice(next)];
}

/** Where each key stands first. */
function placesOf(keys: readonly unknown[]): Map<unknown, number> {
  return new Map(keys.map((key, i) => [key, i] as const).reverse());
}

function removeFrom(result: Record<string, unknown>, name: string, values: unknown): void {
  const list = result[name];
  if (!Array.isArray(list) || !Array.isArray(values)) return;
  const removed = new Set<unknown>(values);
  result[name] = list.filter((item) => !removed.has(item));
}

/** `$setElementOrder`: the named items in that order, others where they are. */
function reorder({ mergeKey, name }: Place, result: Record<string, unknown>, order: unknown): void {
  const list = result[name];
  if (!Array.isArray(list) || !Array.isArray(order) || mergeKey === undefined) return;
  const keyOf = (item: unknown) => (mergeKey === "" ? item : keyIn(item, name, mergeKey));
  result[name] = inOrder(list, { original: list, patch: order, keyOf });
}

/** What is new in an object may hold directives too; there they have nothing to act on. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.filter((item) => !(isRecord(item) && PATCH in item)).map(withoutDirectives);
  }
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).filter(([key, item]) => !key.startsWith("$") && item !== null);
  return Object.fromEntries(entries.map(([key, item]) => [key, withoutDirectives(item)]));
}

function omitKeys(object: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}

function unique(items: readonly unknown[]): readonly unknown[] {
  return [...new Set(items)];
}
