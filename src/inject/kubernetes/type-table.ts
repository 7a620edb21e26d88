/**
 * Types of the Kubernetes API by name, read from tables of text:
 *
 *   Container                                         a type
 *     Name string; Env? []EnvVar merge:name; ...      its fields
 *
 * A field has its name in Go (the name in JSON follows from it, or stands behind `=`), `?` when it is left out where it is
 * empty, its kind, and how lists of it are merged. A kind is a scalar, a type, `*` something that may be unset, `[]` a list
 * or `{}` a map by text.
 */
import { typesIn } from "@mizzen/go-template/type-tables";
import { POD_TYPES } from "./pod-types.ts";
import { VOLUME_TYPES } from "./volume-types.ts";
import { WORKLOAD_TYPES } from "./workload-types.ts";

/** What a field holds. */
export type Kind =
  | { readonly is: "scalar"; readonly scalar: Scalar }
  | { readonly is: "type"; readonly type: string }
  | { readonly is: "pointer" | "list" | "map"; readonly of: Kind };

/** Values without fields; `any` is not looked into. */
export type Scalar = "string" | "bool" | "int" | "float" | "bytes" | "time" | "quantity" | "intstr" | "any";

/** One field of a type. */
export interface Field {
  /** Its name in Go, by which templates know it. */
  readonly go: string;
  readonly json: string;
  readonly omitEmpty: boolean;
  readonly kind: Kind;
  /** A list whose items are merged: objects by this key, scalars (an empty key) by themselves. */
  readonly mergeKey: string | undefined;
}

const SCALARS: ReadonlySet<string> = new Set([
  "string",
  "bool",
  "int",
  "float",
  "bytes",
  "time",
  "quantity",
  "intstr",
  "any",
]);

/** The fields of a type, in the order in which Go writes them. */
export function fieldsOf(type: string): readonly Field[] {
  const fields = TYPES.get(type);
  if (fields === undefined) throw new Error(`no type "${type}" in the tables`);
  return fields;
}

/** The field of a type by its name in JSON. */
export function fieldOf(type: string, json: string): Field | undefined {
  return fieldsOf(type).find((field) => field.json === json);
}

const TYPES: ReadonlyMap<string, readonly Field[]> = new Map(
  [POD_TYPES, VOLUME_TYPES, WORKLOAD_TYPES].flatMap((table) => [...typesIn(table, readField)]),
);

function readField(text: string): Field {
  const [name = "", kind = "", merge] = text.split(" ");
  const [go = "", json = jsonName(go)] = name.replace("?", "").split("=");
  return {
    go,
    json,
    omitEmpty: name.endsWith("?"),
    kind: readKind(kind),
    mergeKey: merge === undefined ? undefined : (merge.split(":")[1] ?? ""),
  };
}

/** `dnsPolicy` of `DNSPolicy`: a run of capitals is one word. */
function jsonName(go: string): string {
  return go.replace(/^[A-Z]+(?=[A-Z][a-z])|^[A-Z]+(?=$|\d)|^[A-Z]/, (word) => word.toLowerCase());
}

function readKind(text: string): Kind {
  if (text.startsWith("*")) return { is: "pointer", of: readKind(text.slice(1)) };
  if (text.startsWith("[]")) return { is: "list", of: readKind(text.slice(2)) };
  if (text.startsWith("{}")) return { is: "map", of: readKind(text.slice(2)) };
  return SCALARS.has(text) ? { is: "scalar", scalar: text as Scalar } : { is: "type", type: text };
}
