import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatYaml } from "./format.ts";
import { readDocument } from "./read.ts";

test("formatYaml() writes sorted keys, nested objects and lists at the indent of their key", () => {
  const value = {
    statusPort: 15020,
    drainDuration: "45s",
    none: undefined,
    tracing: { zipkin: { address: "zipkin.istio-system:9411" }, tags: {} },
    extraStatTags: ["a", "b: c"],
    probes: [{ path: "/x", port: 1 }, []],
    on: true,
    version: "1.0",
  };
  assert.equal(
    formatYaml(value),
    [
      "drainDuration: 45s",
      "extraStatTags:",
      "- a",
      '- "b: c"',
      '"on": true',
      "probes:",
      "- path: /x",
      "  port: 1",
      "- []",
      "statusPort: 15020",
      "tracing:",
      "  tags: {}",
      "  zipkin:",
      "    address: zipkin.istio-system:9411",
      'version: "1.0"',
      "",
    ].join("\n"),
  );
});

test("formatYaml() gives what reads back as the same value", () => {
  const leaf = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom(..."aeiy.:-+ #'\"\\\n~0159[]{}") }),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.constantFrom("yes", "No", "null", "1e3", "0x1", "12:30", "2020-01-01", ".5", "-", "- a", "a #b", "&a", "*a"),
  );
  const { value: values } = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: "small" }, leaf, fc.array(tie("value")), fc.dictionary(fc.string(), tie("value"))),
  }));
  fc.assert(
    fc.property(fc.dictionary(fc.string({ minLength: 1 }), values), (value) => {
      const plain: Record<string, never> = JSON.parse(JSON.stringify(value));
      assert.deepEqual(JSON.parse(JSON.stringify(readDocument(formatYaml(plain)).value ?? {})), plain);
    }),
    { numRuns: 300 },
  );
});
