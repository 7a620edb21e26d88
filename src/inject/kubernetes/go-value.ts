/** Objects of Kubernetes as templates see them: Go's structs, whose unset fields are empty and never missing. */

import { Struct, TextMap, toValue, type Value } from "@mizzen/go-template/value";
import { isRecord } from "#lib/json/is-record.ts";
import type { JsonObject } from "./canonical.ts";
import { fieldsOf, type Kind, type Scalar } from "./type-table.ts";

/** An object of a type. */
export function goStruct(type: string, object: JsonObject): Struct {
  const fields = fieldsOf(type).map(({ go, json, kind }) => [go, goValue(kind, object[json])] as const);
  return new Struct(`v1.${type}`, Object.fromEntries(fields), { json: object });
}

function goValue(kind: Kind, value: unknown): Value {
  switch (kind.is) {
    case "pointer":
      return value === undefined || value === null ? null : goValue(kind.of, value);
    case "type":
      return goStruct(kind.type, isRecord(value) ? value : {});
    case "list":
      return Array.isArray(value) ? value.map((item) => goValue(kind.of, item)) : [];
    case "map":
      return goMap(kind.of, isRecord(value) ? value : {});
    case "scalar":
      return goScalar(kind.scalar, value);
  }
}

function goMap(of: Kind, value: JsonObject): Value {
  const entries = Object.entries(value);
  if (of.is === "scalar" && of.scalar === "string")
    return new TextMap(Object.fromEntries(entries.map(([key, item]) => [key, String(item)])));
  return Object.fromEntries(entries.map(([key, item]) => [key, goValue(of, item)]));
}

function goScalar(scalar: Scalar, value: unknown): Value {
  switch (scalar) {
    case "string":
      return typeof value === "string" ? value : "";
    case "bool":
      return value === true;
    case "int":
      return BigInt(typeof value === "number" ? value : 0);
    case "float":
      return typeof value === "number" ? value : 0;
    case "quantity":
    case "time":
      return printable(scalar, value ?? (scalar === "quantity" ? "0" : ""));
    case "intstr":
      return printable(scalar, value ?? 0);
    case "bytes":
    case "any":
      return toValue(value);
  }
}

/** A struct that prints as its value: templates print it, or ask for its text. */
function printable(type: string, value: unknown): Struct {
  const text = String(value);
  return new Struct(type, { String: () => text }, { text, json: value });
}
