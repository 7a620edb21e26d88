import assert from "node:assert/strict";
import { test } from "node:test";
import { knownKinds } from "../kinds/kinds.ts";
import { list, map, message, oneof, required } from "../schema/message.ts";
import { anything, bool, bytes, double, duration, enumeration, string, uint32 } from "../schema/scalars.ts";
import { jsonSchemaOf, jsonSchemaOfAll, jsonSchemaOfKind } from "./json-schema.ts";

test("jsonSchemaOf() says what may be written, with all that scalars take", () => {
  const schema = message(
    {
      text: required(string()),
      flag: bool(),
      count: uint32(),
      share: double(),
      wait: duration(),
      mode: enumeration("A", "B"),
      raw: bytes(),
      free: anything(),
      names: list(string()),
      labels: map(string()),
    },
    oneof("flag", "count"),
  );
  const { properties, required: needed, additionalProperties, allOf } = jsonSchemaOf(schema);
  assert.deepEqual(needed, ["text"]);
  assert.equal(additionalProperties, false);
  assert.deepEqual(allOf, [{ not: { required: ["flag", "count"] } }]);
  const shown = properties as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  assert.deepEqual(shown.text, { type: "string" });
  assert.deepEqual(shown.flag, { type: "boolean" });
  assert.deepEqual([shown.count?.type, shown.count?.maximum], [["integer", "string"], 2 ** 32 - 1]);
  assert.deepEqual(shown.mode, { anyOf: [{ enum: ["A", "B"] }, { type: "integer", minimum: 0, maximum: 1 }] });
  assert.deepEqual(shown.names, { type: "array", items: { type: "string" } });
  assert.deepEqual(shown.labels, { type: "object", additionalProperties: { type: "string" } });
  assert.deepEqual(shown.free, {});
  const pattern = new RegExp(String(shown.wait?.pattern));
  for (const good of ["10s", "1.5h", "1h30m", "0", "-1ms", ".5s"]) assert.match(good, pattern);
  for (const bad of ["10", "s", "10 s", ""]) assert.doesNotMatch(bad, pattern);
});

test("jsonSchemaOfKind() describes whole objects", () => {
  const kinds = knownKinds();
  const named = (name: string) => {
    const kind = kinds.find((one) => one.name === name);
    assert.ok(kind);
    return jsonSchemaOfKind(kind) as { properties: Record<string, Record<string, unknown>>; required: unknown };
  };
  const service = named("VirtualService");
  assert.deepEqual(service.properties.apiVersion?.enum, [
    "networking.istio.io/v1",
    "networking.istio.io/v1beta1",
    "networking.istio.io/v1alpha3",
  ]);
  assert.equal(service.properties.spec?.additionalProperties, false);
  assert.equal("data" in named("ConfigMap").properties, true);
  assert.equal(named("Pod").properties.spec?.additionalProperties, undefined);
  const { allOf } = jsonSchemaOfAll(kinds, ({ name }) => `${name}.json`);
  assert.equal((allOf as readonly unknown[]).length, kinds.length);
});
