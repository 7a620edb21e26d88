import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import { proxyOf } from "../../../test/support/mesh.ts";
import { traitsOf } from "../traits/traits.ts";
import { tracing } from "./tracing.ts";

type Settings = NonNullable<MeshConfig["defaultConfig"]["tracing"]>;
const tracingOf = (settings: Settings, mesh: Partial<MeshConfig> = {}) => {
  const config = { ...DEFAULT_MESH_CONFIG, defaultConfig: { tracing: settings }, ...mesh };
  return tracing(config, traitsOf(config, proxyOf()).http);
};
const tags = (settings: Settings) => tracingOf(settings)?.customTags?.map(({ tag }) => tag) ?? [];

test("a mesh can have no tracing", () => {
  assert.equal(tracingOf({}, { enableTracing: false }), undefined);
});

test("one percent is sampled where nobody says, or says nonsense", () => {
  for (const sampling of [undefined, 0, -5, 400]) {
    assert.deepEqual(tracingOf({ sampling })?.randomSampling, { value: 1 });
  }
  assert.deepEqual(tracingOf({ sampling: 12.5 })?.randomSampling, { value: 12.5 });
});

test("spans are tagged with the workload unless that is turned off, in order of the tags' names", () => {
  const own = tags({});
  assert.ok(own.includes("istio.canonical_service"));
  assert.deepEqual(own, [...own].sort());
  assert.deepEqual(tags({ enableIstioTags: false }), []);
});

test("a tag without a name, a value or a source is left out", () => {
  const customTags = {
    "": { literal: { value: "x" } },
    a: { literal: { value: "x" } },
    b: { header: { name: "x-b" } },
    c: { environment: { name: "C", defaultValue: "c" } },
    d: { literal: {} },
    e: { header: {} },
    f: { environment: {} },
    g: {},
  };
  assert.deepEqual(tags({ enableIstioTags: false, customTags }), ["a", "b", "c"]);
});
