/** CustomResourceDefinitions of the kinds of the mesh, made from the schemas it reads them by. */
import { isRecord } from "#lib/json/is-record.ts";
import type { CustomKind, Kind } from "../kinds/kind.ts";
import { KINDS } from "../kinds/kinds.ts";
import { CONSTRAINTS } from "./constraints.ts";
import { fieldDescription } from "./descriptions.ts";
import { type JsonSchema, jsonSchemaOf } from "./json-schema.ts";
import { structuralOf } from "./structural.ts";

const AGE: JsonSchema = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: "Time since the object was created",
};
/** One definition for each kind that comes with the mesh. */
export function customResourceDefinitions(): readonly JsonSchema[] {
  return KINDS.flatMap((kind) => (kind.crd === undefined ? [] : [definitionOf(kind, kind.crd)]));
}

function definitionOf({ name, group, plural, ...kind }: Kind, crd: CustomKind): JsonSchema {
  const spec = constrained(structuralOf(jsonSchemaOf(kind.schema)), `${name}.spec`);
  const versions = kind.servedAs === undefined ? kind.versions : [kind.servedAs];
  const schema = {
    openAPIV3Schema: {
      type: "object",
      description: crd.description,
      properties: { spec: { description: "What is wanted", ...spec }, status: STATUS },
      ...(crd.needsSpec === true && { required: ["spec"] }),
    },
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}`, labels: { app: "istio-pilot", release: "istio" } },
    spec: {
      group,
      scope: "Namespaced",
      names: {
        kind: name,
        listKind: `${name}List`,
        plural,
        singular: name.toLowerCase(),
        ...(crd.shortName !== undefined && { shortNames: [crd.shortName] }),
        categories: ["istio-io", group.replaceAll(".", "-")],
      },
      versions: versions.map((version, i) => ({
        name: version,
        served: true,
        storage: i === 0,
        additionalPrinterColumns: [...columnsOf(crd), AGE],
        schema,
        subresources: { status: {} },
      })),
    },
  };
}

function columnsOf({ columns = [] }: CustomKind): readonly JsonSchema[] {
  return columns.map(({ name, jsonPath, description }) => ({ name, type: "string", jsonPath, description }));
}

/** What the control plane writes about an object, and whatever others do. */
const STATUS: JsonSchema = {
  type: "object",
  description: "What became of it",
  "x-kubernetes-preserve-unknown-fields": true,
  properties: {
    conditions: {
      type: "array",
      items: {
        type: "object",
        properties: {
          type: { type: "string" },
          status: { type: "string" },
          reason: { type: "string" },
          message: { type: "string" },
          lastProbeTime: { type: "string", format: "date-time" },
          lastTransitionTime: { type: "string", format: "date-time" },
          observedGeneration: { "x-kubernetes-int-or-string": true },
        },
      },
    },
    observedGeneration: { "x-kubernetes-int-or-string": true },
  },
};

/** The schema with the constraints that hold at its path and below. */
function constrained(schema: JsonSchema, path: string): JsonSchema {
  const { properties, items, additionalProperties } = schema;
  const own = CONSTRAINTS.filter(({ at }) => at.some((end) => path === end || path.endsWith(`.${end}`)));
  return Object.assign(
    {},
    schema,
    isRecord(properties) && { properties: fieldsWith(properties, path) },
    isRecord(items) && { items: constrained(items, `${path}[]`) },
    isRecord(additionalProperties) && { additionalProperties: constrained(additionalProperties, `${path}{}`) },
    ...own.map(({ schema: more }) => more),
    joinedRules(own.map(({ schema: more }) => more)),
  );
}

/** Names that the API has kept from earlier times. The API server knows no other spelling than those it is told. */
const FORMER_NAMES: Readonly<Record<string, string>> = { jwksUri: "jwks_uri", mirrorPercent: "mirror_percent" };

function fieldsWith(properties: JsonSchema, path: string): JsonSchema {
  const fields = Object.entries(properties).flatMap(([name, field]): [string, unknown][] => {
    const former = FORMER_NAMES[name];
    return former === undefined
      ? [[name, field]]
      : [
          [name, field],
          [former, field],
        ];
  });
  return Object.fromEntries(
    fields.map(([name, field]) => [name, isRecord(field) ? described(field, `${path}.${name}`) : field]),
  );
}

function described(field: JsonSchema, path: string): JsonSchema {
  const description = fieldDescription(path);
  const schema = constrained(field, path);
  return description === undefined ? schema : { description, ...schema };
}

/** Rules of several constraints hold together. */
function joinedRules(schemas: readonly JsonSchema[]): JsonSchema {
  const rules = schemas.flatMap((schema) => schema["x-kubernetes-validations"] ?? []);
  return rules.length === 0 ? {} : { "x-kubernetes-validations": rules };
}
