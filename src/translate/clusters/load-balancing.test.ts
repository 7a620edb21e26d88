import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { Cluster_LbPolicy as LbPolicy } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { commonBalancing, loadBalancing } from "./load-balancing.ts";

test("fewest requests is the default, whatever else is unknown", () => {
  for (const simple of [undefined, "UNSPECIFIED", "LEAST_REQUEST", "LEAST_CONN"] as const) {
    assert.deepEqual(loadBalancing({ simple }), { lbPolicy: LbPolicy.LEAST_REQUEST });
  }
  assert.deepEqual(loadBalancing(undefined), { lbPolicy: LbPolicy.LEAST_REQUEST });
});

test("new endpoints start slowly where the policy knows of it", () => {
  const warmup = { duration: 10_000 };
  assert.equal(loadBalancing({ simple: "ROUND_ROBIN", warmup }).lbConfig?.case, "roundRobinLbConfig");
  assert.equal(loadBalancing({ warmupDurationSecs: 10_000 }).lbConfig?.case, "leastRequestLbConfig");
  assert.equal(loadBalancing({ simple: "RANDOM", warmup }).lbConfig, undefined);
});

test("a ring is no larger than Envoy takes", () => {
  const size = (minimumRingSize: number) => {
    const { lbConfig } = loadBalancing({ consistentHash: { ringHash: { minimumRingSize } } });
    return lbConfig?.case === "ringHashLbConfig" ? lbConfig.value.minimumRingSize : undefined;
  };
  assert.equal(size(100), 100n);
  assert.equal(size(1e9), 8_388_608n);
  assert.equal(size(0), undefined);
});

test("a table whose size is no prime, or too large, has Envoy's own size", () => {
  const size = (tableSize: number) => {
    const { lbConfig } = loadBalancing({ consistentHash: { maglev: { tableSize } } });
    return lbConfig?.case === "maglevLbConfig" ? lbConfig.value.tableSize : undefined;
  };
  assert.equal(size(65_537), 65_537n);
  assert.equal(size(2), 2n);
  for (const refused of [0, 1, 4, 65_536, 5_000_017]) assert.equal(size(refused), undefined, String(refused));
});

test("with outlier detection all endpoints may be ejected, unless the rule says otherwise", () => {
  const threshold = (minHealthPercent?: number) =>
    commonBalancing({ outlierDetection: { minHealthPercent } }, {}, { mesh: DEFAULT_MESH_CONFIG, traits: {} })
      .healthyPanicThreshold;
  assert.deepEqual(threshold(), { value: 0 });
  assert.deepEqual(threshold(40), { value: 40 });
  assert.equal(commonBalancing({}, {}, { mesh: DEFAULT_MESH_CONFIG, traits: {} }).healthyPanicThreshold, undefined);
});

test("localities are weighed with shares, and for failing over only with outlier detection", () => {
  const weighs = (policy: Parameters<typeof commonBalancing>[0]) =>
    commonBalancing(policy, {}, { mesh: DEFAULT_MESH_CONFIG, traits: {} }).localityConfigSpecifier?.case ===
    "localityWeightedLbConfig";
  const failover = { loadBalancer: { localityLbSetting: { failover: [{ from: "a", to: "b" }] } } };
  assert.equal(weighs(failover), false);
  assert.equal(weighs({ ...failover, outlierDetection: {} }), true);
  assert.equal(weighs({ loadBalancer: { localityLbSetting: { distribute: [] } } }), true);
});
