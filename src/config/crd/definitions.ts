/** CustomResourceDefinitions of the kinds of the mesh, made from the schemas it reads them by. */
import type { CustomKind, Kind } from "../kinds/kind.ts";
import { KINDS } from "../kinds/kinds.ts";
import type { JsonSchema } from "./json-schema.ts";
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
  const spec = structuralOf(kind.schema);
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
