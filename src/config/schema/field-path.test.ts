import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatField, parseField } from "./field-path.ts";

test("formatField() writes names, indexes and names that would be misread", () => {
  assert.equal(["spec", "http", 0, "headers", "x-a"].reduce(formatField, ""), "spec.http[0].headers.x-a");
  assert.equal(formatField("spec.labels", "a.b/c"), 'spec.labels["a.b/c"]');
  assert.equal(formatField("spec.labels", ""), 'spec.labels[""]');
});

test("parseField() reads back what formatField() wrote", () => {
  const step = fc.oneof(fc.string(), fc.nat());
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const [first, ...rest] = ["spec", ...steps];
      assert.deepEqual(parseField(rest.reduce<string>(formatField, String(first))), [first, ...rest]);
    }),
  );
});
