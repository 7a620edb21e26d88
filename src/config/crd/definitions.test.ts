import assert from "node:assert/strict";
import { test } from "node:test";
import { isRecord } from "#lib/json/is-record.ts";
import { customResourceDefinitions } from "./definitions.ts";

interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly names: { readonly kind: string; readonly shortNames?: readonly string[] };
    readonly versions: readonly { readonly name: string; readonly storage: boolean; readonly schema: unknown }[];
  };
}

const DEFINITIONS = customResourceDefinitions() as unknown as readonly Definition[];

test("customResourceDefinitions() has each custom kind once, with one stored version", () => {
  const kinds = DEFINITIONS.map(({ spec }) => spec.names.kind);
  assert.equal(new Set(kinds).size, kinds.length);
  for (const kind of ["VirtualService", "WorkloadGroup", "EnvoyFilter", "RequestAuthentication"])
    assert.ok(kinds.includes(kind));
  for (const { spec } of DEFINITIONS) assert.equal(spec.versions.filter(({ storage }) => storage).length, 1);
});

test("customResourceDefinitions() gives every value one type: the API server refuses a schema that does not", () => {
  const wrong: string[] = [];
  const walk = (schema: unknown, path: string) => {
    if (!isRecord(schema)) return;
    const isOpen =
      schema["x-kubernetes-preserve-unknown-fields"] === true || schema["x-kubernetes-int-or-string"] === true;
    if (typeof schema.type !== "string" && !isOpen) wrong.push(path);
    if (isRecord(schema.properties)) {
      for (const [name, field] of Object.entries(schema.properties)) walk(field, `${path}.${name}`);
    }
    if (schema.items !== undefined) walk(schema.items, `${path}[]`);
    if (schema.additionalProperties !== undefined) walk(schema.additionalProperties, `${path}{}`);
  };
  for (const { metadata, spec } of DEFINITIONS) {
    for (const { schema } of spec.versions) walk(isRecord(schema) ? schema.openAPIV3Schema : undefined, metadata.name);
  }
  assert.deepEqual(wrong, []);
});

test("customResourceDefinitions() explains every kind and every field of its spec", () => {
  const unexplained = DEFINITIONS.flatMap(({ spec }) => {
    const schema = spec.versions[0]?.schema;
    const whole = isRecord(schema) && isRecord(schema.openAPIV3Schema) ? schema.openAPIV3Schema : {};
    const properties =
      isRecord(whole.properties) && isRecord(whole.properties.spec) ? whole.properties.spec.properties : {};
    const fields = Object.entries(isRecord(properties) ? properties : {}).filter(
      ([, field]) => !isRecord(field) || typeof field.description !== "string",
    );
    return [
      ...(typeof whole.description === "string" ? [] : [spec.names.kind]),
      ...fields.map(([name]) => `${spec.names.kind}.spec.${name}`),
    ];
  });
  assert.deepEqual(unexplained, []);
});
