import assert from "node:assert/strict";
import { test } from "node:test";
import { atMostOne, field, rule } from "../schema/field.ts";
import { list, map, message, required } from "../schema/message.ts";
import { bool, duration, enumeration, intOrString, portNumber, string, struct } from "../schema/scalars.ts";
import { structuralOf } from "./structural.ts";

test("structuralOf() gives every value one type", () => {
  const schema = message({
    mode: enumeration("A", "B"),
    wait: duration(),
    free: struct(),
    either: intOrString(),
    names: list(string()),
    flags: map(bool()),
  });
  assert.deepEqual(structuralOf(schema), {
    type: "object",
    properties: {
      mode: { type: "string", enum: ["A", "B"] },
      wait: { type: "string" },
      free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      either: { "x-kubernetes-int-or-string": true },
      names: { type: "array", items: { type: "string" } },
      flags: { type: "object", additionalProperties: { type: "boolean" } },
    },
  });
});

test("structuralOf() has the facts that schemas declare about fields", () => {
  const port = field(message({ number: required(portNumber()) }), { rules: [atMostOne(["a", "b"], "one")] });
  const schema = message({
    ports: field(list(port), { description: "Ports", maxItems: 2, listKey: "number" }),
    uri: field(string(), { description: "Where", formerName: "old_uri", minLength: 1 }),
    asked: field(string(), { isRequired: true }),
    spared: required(field(string(), { isRequired: false })),
  });
  const validPort = rule("0 < self && self <= 65535", "port must be between 1-65535");
  const one = { rule: "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) <= 1", message: "one" };
  assert.deepEqual(structuralOf(schema), {
    type: "object",
    properties: {
      ports: {
        description: "Ports",
        type: "array",
        items: {
          type: "object",
          properties: {
            number: { type: "integer", minimum: 0, maximum: 2 ** 32 - 1, "x-kubernetes-validations": [validPort] },
          },
          required: ["number"],
          "x-kubernetes-validations": [one],
        },
        maxItems: 2,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["number"],
      },
      uri: { description: "Where", type: "string", minLength: 1 },
      old_uri: { type: "string", minLength: 1 },
      asked: { type: "string" },
      spared: { type: "string" },
    },
    required: ["asked"],
  });
});

test("facts hold at the place where they are declared, on top of those of the schema", () => {
  const text = field(string(), { maxLength: 5, description: "A text" });
  const inner = message({ text });
  const schema = message({
    longer: field(text, { maxLength: 9 }),
    inner: field(inner, { isBrief: true }),
    plain: inner,
  });
  const described = { description: "A text", type: "string" };
  assert.deepEqual(structuralOf(schema).properties, {
    longer: { ...described, maxLength: 9 },
    inner: { type: "object", properties: { text: { type: "string", maxLength: 5 } } },
    plain: { type: "object", properties: { text: { ...described, maxLength: 5 } } },
  });
});
