import assert from "node:assert/strict";
import { test } from "node:test";
import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { effectivePolicy, localitySettings, prefersNear } from "./traffic-policy.ts";

const RULE: DestinationRule = {
  host: "web",
  trafficPolicy: {
    loadBalancer: { simple: "ROUND_ROBIN" },
    outlierDetection: { consecutive5xxErrors: 1 },
    portLevelSettings: [{ port: { number: 9000 }, tls: { mode: "DISABLE" } }],
  },
  subsets: [
    { name: "plain", labels: {} },
    { name: "own", labels: {}, trafficPolicy: { loadBalancer: { simple: "RANDOM" } } },
    {
      name: "ported",
      labels: {},
      trafficPolicy: { portLevelSettings: [{ port: { number: 80 }, loadBalancer: { simple: "RANDOM" } }] },
    },
  ],
};

test("without a rule nothing is set", () => {
  assert.deepEqual(effectivePolicy(undefined, 80), {});
  assert.deepEqual(effectivePolicy(undefined, 80, "v1"), {});
});

test("settings of a port replace those of the rule as a whole", () => {
  assert.deepEqual(effectivePolicy(RULE, 9000), { tls: { mode: "DISABLE" } });
  assert.equal(effectivePolicy(RULE, 80).loadBalancer?.simple, "ROUND_ROBIN");
});

test("a subset inherits what it does not set", () => {
  assert.deepEqual(effectivePolicy(RULE, 80, "plain"), effectivePolicy(RULE, 80));
  const own = effectivePolicy(RULE, 80, "own");
  assert.equal(own.loadBalancer?.simple, "RANDOM");
  assert.equal(own.outlierDetection?.consecutive5xxErrors, 1);
});

test("a subset with settings for the port inherits none", () => {
  const ported = effectivePolicy(RULE, 80, "ported");
  assert.equal(ported.loadBalancer?.simple, "RANDOM");
  assert.equal(ported.outlierDetection, undefined);
});

test("an unknown subset has the settings of the rule", () => {
  assert.deepEqual(effectivePolicy(RULE, 80, "no-such"), effectivePolicy(RULE, 80));
});

test("where the proxy is matters with shares, or with outlier detection, unless it is turned off", () => {
  const mesh = DEFAULT_MESH_CONFIG;
  assert.equal(prefersNear({}, mesh, {}), false);
  assert.equal(prefersNear({ outlierDetection: {} }, mesh, {}), true);
  assert.equal(prefersNear({ loadBalancer: { localityLbSetting: { distribute: [] } } }, mesh, {}), true);
  const off = { outlierDetection: {}, loadBalancer: { localityLbSetting: { enabled: false } } };
  assert.equal(prefersNear(off, mesh, {}), false);
  assert.equal(localitySettings(off, mesh, {}), undefined);
});
