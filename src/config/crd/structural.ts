/**
 * Schemas in the form that the API server asks for: one type per value, every field said once, no references (a "structural
 * schema").
 */
import * as z from "zod";
import { type Facts, factsOf } from "../schema/field.ts";
import type { JsonSchema } from "./json-schema.ts";

/** The structural schema of a value. */
export function structuralOf(schema: z.core.$ZodType): JsonSchema {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === "optional") return structuralOf(def.innerType);
  const facts = factsOf(schema);
  const type = def.type === "object" ? messageType(schema, def.shape, facts) : plainType(schema);
  return { ...type, ...keywords(facts) };
}

function messageType(schema: z.core.$ZodType, shape: z.core.$ZodShape, { isBrief }: Facts): JsonSchema {
  const properties = Object.entries(shape).flatMap(([name, value]) => {
    const { description, formerName } = factsOf(innermost(value));
    const property = structuralOf(value);
    const described = description === undefined || isBrief ? property : { description, ...property };
    return [[name, described], ...(formerName === undefined ? [] : [[formerName, property]])];
  });
  const required = Object.keys(shape).filter((name) => isRequired(shape[name]));
  const { allOf } = z.globalRegistry.get(schema) ?? {};
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    ...(allOf !== undefined && { allOf }),
    ...(required.length > 0 && { required }),
  };
}

function isRequired(schema: z.core.$ZodType | undefined): boolean {
  return schema !== undefined && (factsOf(innermost(schema)).isRequired ?? innermost(schema) === schema);
}

function innermost(schema: z.core.$ZodType): z.core.$ZodType {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  return def.type === "optional" ? def.innerType : schema;
}

const OPEN = { "x-kubernetes-preserve-unknown-fields": true };

function plainType(schema: z.core.$ZodType): JsonSchema {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === "array") return { type: "array", items: structuralOf(def.element) };
  if (def.type === "record") return { type: "object", additionalProperties: structuralOf(def.valueType) };
  const { type, anyOf, minimum, maximum } = z.globalRegistry.get(schema) ?? {};
  if (Array.isArray(anyOf)) return { type: "string", enum: anyOf.flatMap((choice) => choice.enum ?? []) };
  if (Array.isArray(type)) return numberType(type, minimum, maximum);
  if (type === undefined) return OPEN;
  return type === "object" ? { type, ...OPEN } : { type };
}

/** Numbers may be quoted in the JSON of protobuf, but not in Kubernetes. */
function numberType(types: readonly unknown[], minimum: unknown, maximum: unknown): JsonSchema {
  if (types.includes("number")) return { type: "number" };
  if (minimum === undefined) return { "x-kubernetes-int-or-string": true };
  return { type: "integer", ...(minimum === 0 && { minimum }), ...(maximum === 2 ** 32 - 1 && { maximum }) };
}

/** Facts as keywords of the schema, in the order in which they are declared. */
function keywords(facts: Facts): JsonSchema {
  const { description: _, isRequired: __, formerName: ___, isBrief: ____, ...checks } = facts;
  return Object.fromEntries(Object.entries(checks).flatMap(([name, value]) => keyword(name, value)));
}

function keyword(name: string, value: unknown): readonly (readonly [string, unknown])[] {
  if (name === "rules") return [["x-kubernetes-validations", value]];
  if (name !== "listKey") return [[name, value]];
  return [
    ["x-kubernetes-list-type", "map"],
    ["x-kubernetes-list-map-keys", [value]],
  ];
}
