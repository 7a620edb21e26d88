import assert from "node:assert/strict";
import { test } from "node:test";
import { InjectionError } from "./injection-error.ts";
import { parseInjectionConfig } from "./injector.ts";

test("parseInjectionConfig() takes numbers and booleans for text, as Kubernetes does", () => {
  const config = parseInjectionConfig(`
    injectedAnnotations: {safe-to-evict: true, weight: 5, ratio: 1.5, none: null, plain: text}
    defaultTemplates: [sidecar, 5]
    aliases: {both: [sidecar, 5]}
    templates: {5: 6}
  `);
  assert.deepEqual(config.injectedAnnotations, {
    "safe-to-evict": "true",
    weight: "5",
    ratio: "1.5",
    none: "",
    plain: "text",
  });
  assert.deepEqual(config.defaultTemplates, ["sidecar", "5"]);
  assert.deepEqual(config.aliases, { both: ["sidecar", "5"] });
  assert.deepEqual(config.templates, { 5: "6" });
});

for (const [text, message] of [
  ["injectedAnnotations: [a]", /^injectedAnnotations of the injection configuration must be texts by name$/],
  ["injectedAnnotations: {a: {}}", /^injectedAnnotations of the injection configuration must be texts by name$/],
  ["templates: {a: [b]}", /^templates of the injection configuration must be texts by name$/],
  ["defaultTemplates: sidecar", /^defaultTemplates of the injection configuration must be a list of names$/],
  ["defaultTemplates: [[a]]", /^defaultTemplates of the injection configuration must be a list of names$/],
] as const) {
  test(`parseInjectionConfig() refuses ${text}`, () => {
    const isMeant = (thrown: unknown) => thrown instanceof InjectionError && message.test(thrown.message);
    assert.throws(() => parseInjectionConfig(text), isMeant);
  });
}
