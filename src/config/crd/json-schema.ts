/** Schemas of the user's API as JSON Schema, for editors: what may be written, not what it becomes. */
import * as z from "zod";
import type { Kind } from "../kinds/kind.ts";
import type { Schema } from "../schema/message.ts";

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const DIALECT = "http://json-schema.org/draft-07/schema#";

/** The schema of a value. Fields that are not known are refused, since nearly all of them are misspelt. */
export function jsonSchemaOf(schema: Schema<unknown>): JsonSchema {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    target: "draft-7",
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      const { def } = zodSchema._zod;
      if (def.type === "object") {
        const needed = Object.keys(def.shape).filter((name) => def.shape[name]?._zod.def.type !== "optional");
        jsonSchema.additionalProperties = false;
        if (needed.length > 0) jsonSchema.required = needed;
      }
      // Keys are always text, so saying it says nothing.
      delete jsonSchema.propertyNames;
    },
  });
  return json;
}

/** The schema of whole objects of a kind. */
export function jsonSchemaOfKind(kind: Kind): JsonSchema {
  const content = jsonSchemaOf(kind.schema);
  const inside = kind.content === undefined ? { spec: open(content, kind) } : propertiesOf(content);
  return {
    $schema: DIALECT,
    title: `${kind.name} (${kind.group || "Kubernetes"})`,
    type: "object",
    properties: {
      apiVersion: { enum: apiVersionsOf(kind) },
      kind: { const: kind.name },
      metadata: METADATA,
      ...inside,
      status: { type: "object" },
    },
    required: ["apiVersion", "kind", "metadata"],
    ...(kind.content === undefined && { additionalProperties: false }),
  };
}

/** `networking.istio.io/v1`, ... the newest first. */
export function apiVersionsOf({ group, versions }: Kind): readonly string[] {
  return versions.map((version) => (group === "" ? version : `${group}/${version}`));
}

/** A schema that leads to the one of the kind an object has. `placeOf` says where that lies. */
export function jsonSchemaOfAll(kinds: readonly Kind[], placeOf: (kind: Kind) => string): JsonSchema {
  return {
    $schema: DIALECT,
    title: "Any object that the mesh reads",
    type: "object",
    required: ["apiVersion", "kind"],
    allOf: kinds.map((kind) => ({
      if: { properties: { apiVersion: { enum: apiVersionsOf(kind) }, kind: { const: kind.name } } },
      // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
      then: { $ref: placeOf(kind) },
    })),
  };
}

const TEXTS = { type: "object", additionalProperties: { type: "string" } };
const METADATA = {
  type: "object",
  properties: { name: { type: "string" }, namespace: { type: "string" }, labels: TEXTS, annotations: TEXTS },
  required: ["name"],
};

/** Kubernetes has more fields than the mesh looks at. */
function open(schema: JsonSchema, { isPartial }: Kind): JsonSchema {
  if (isPartial !== true) return schema;
  return JSON.parse(
    JSON.stringify(schema, (key, value) => (key === "additionalProperties" && value === false ? undefined : value)),
  );
}

function propertiesOf({ properties }: JsonSchema): JsonSchema {
  return typeof properties === "object" && properties !== null ? { ...properties } : {};
}
