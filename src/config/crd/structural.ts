/**
 * JSON Schemas in the form that the API server asks for: one type per value, every field said once, no references
 * (a "structural schema").
 */
import { isRecord } from "#lib/json/is-record.ts";
import type { JsonSchema } from "./json-schema.ts";

/** Turns the schema of a value around. What is required is left to the constraints: the checks of the mesh ask for more. */
export function structuralOf(schema: JsonSchema): JsonSchema {
  if (schema.format === "go-duration") return { type: "string" };
  if (Array.isArray(schema.type)) return severalTypes(schema);
  const { type, properties, items, additionalProperties, allOf } = schema;
  if (type === undefined && Array.isArray(schema.anyOf)) return named(schema.anyOf);
  if (type === undefined) return { "x-kubernetes-preserve-unknown-fields": true };
  if (type === "array") return { type, items: structuralOf(isRecord(items) ? items : {}) };
  if (type !== "object") return { type };
  if (isRecord(properties)) return message(properties, allOf);
  if (isRecord(additionalProperties)) return { type, additionalProperties: structuralOf(additionalProperties) };
  return { type, "x-kubernetes-preserve-unknown-fields": true };
}

function message(properties: JsonSchema, allOf: unknown): JsonSchema {
  const fields = Object.entries(properties).map(([name, field]) => [name, structuralOf(isRecord(field) ? field : {})]);
  return { type: "object", properties: Object.fromEntries(fields), ...(allOf !== undefined && { allOf }) };
}

/** Enums are written by name in Kubernetes; their numbers are for protobuf. */
function named(choices: readonly unknown[]): JsonSchema {
  const names = choices.flatMap((choice) => (isRecord(choice) && Array.isArray(choice.enum) ? choice.enum : []));
  return { type: "string", enum: names };
}

/** Numbers may be quoted in the JSON of protobuf, but not in Kubernetes. */
function severalTypes({ type, minimum, maximum }: JsonSchema): JsonSchema {
  if (!Array.isArray(type)) return {};
  if (type.includes("number")) return { type: "number" };
  if (minimum === undefined) return { "x-kubernetes-int-or-string": true };
  return { type: "integer", ...(minimum === 0 && { minimum }), ...(maximum === 2 ** 32 - 1 && { maximum }) };
}
