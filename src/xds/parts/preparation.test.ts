import assert from "node:assert/strict";
import { test } from "node:test";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE } from "#protocol/messages/type-urls.ts";
import { startAds } from "../../../test/support/ads-fixture.ts";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../../test/support/xds-client.ts";
import type { Clock } from "../timing/clock.ts";
import { SYSTEM_CLOCK } from "../timing/clock.ts";
import { likelyProxy } from "./likely-proxy.ts";

const PLAN = {
  all: { [CLUSTER_TYPE]: { a: "1", b: "1" }, [ENDPOINT_TYPE]: { a: "10.0.0.1" }, [LISTENER_TYPE]: { c: "1" } },
};
const NOTHING = { parts: 0, resources: 0 };

/** Timers fire when the test says so. */
class TestClock implements Clock {
  readonly #due = new Set<() => void>();
  passed = 0;

  now(): number {
    return SYSTEM_CLOCK.now() + this.passed;
  }

  after(_ms: number, callback: () => void): () => void {
    this.#due.add(callback);
    return () => this.#due.delete(callback);
  }

  fire(): void {
    for (const callback of [...this.#due]) callback();
  }
}

test("likelyProxy() is a sidecar of the namespace with the most services", () => {
  const entry = (name: string, namespace: string) => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  hosts: [${name}.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.2.0.1}]
`;
  const snapshot = meshOf([entry("a", "few"), entry("b", "many"), entry("c", "many")].join("---"));
  const { type, namespace, dnsDomain } = likelyProxy(snapshot);
  assert.deepEqual([type, namespace, dnsDomain], ["sidecar", "many", "many.svc.cluster.local"]);
  assert.equal(likelyProxy(meshOf("")).namespace, "default");
});

test("what was prepared is there for the first proxies, endpoints too", async () => {
  await using ads = await startAds(PLAN);
  await ads.server.prepare();
  assert.equal(ads.builds, 4);
  assert.deepEqual(ads.server.connections(), []);
  using client = new XdsClient(ads.address, { node: nodeOf(proxyOf()) });
  client.request(CLUSTER_TYPE);
  assert.deepEqual(
    (await client.take(CLUSTER_TYPE)).resources.map(({ name }) => name),
    ["a", "b"],
  );
  client.request(ENDPOINT_TYPE, { subscribe: ["a"] });
  await client.take(ENDPOINT_TYPE);
  client.request(LISTENER_TYPE);
  await client.take(LISTENER_TYPE);
  assert.equal(ads.builds, 4);
});

test("what was prepared and nobody came for is forgotten", async () => {
  const clock = new TestClock();
  await using ads = await startAds(PLAN, { clock });
  await ads.server.prepare();
  assert.equal(ads.server.held.resources, 4);
  clock.fire();
  assert.deepEqual(ads.server.held, NOTHING);
});

test("preparing what takes long ends before all is built", async () => {
  const clock = new TestClock();
  const onPlan = () => {
    clock.passed += 600_000;
  };
  await using ads = await startAds(PLAN, { clock, onPlan });
  await ads.server.prepare();
  assert.ok(ads.server.held.resources < 4);
});

test("a preparation that fails keeps nobody from what can be built", async () => {
  let broken = true;
  const onPlan = () => {
    if (broken) throw new Error("a bug");
  };
  await using ads = await startAds({ all: { [CLUSTER_TYPE]: { a: "1" } } }, { onPlan });
  await ads.server.prepare();
  broken = false;
  assert.deepEqual(ads.server.held, NOTHING);
  using client = new XdsClient(ads.address, { node: nodeOf(proxyOf()) });
  client.request(CLUSTER_TYPE);
  assert.deepEqual(
    (await client.take(CLUSTER_TYPE)).resources.map(({ name }) => name),
    ["a"],
  );
});

test("a proxy that comes during a preparation is served after it", async () => {
  await using ads = await startAds(PLAN);
  using client = new XdsClient(ads.address, { node: nodeOf(proxyOf()) });
  client.request(CLUSTER_TYPE);
  await ads.server.prepare();
  assert.equal((await client.take(CLUSTER_TYPE)).resources.length, 2);
  assert.equal(ads.builds, 4);
});

test("nothing is prepared where a proxy has come already", async () => {
  await using ads = await startAds(PLAN);
  using client = new XdsClient(ads.address, { node: nodeOf(proxyOf()) });
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  const { builds } = ads;
  await ads.server.prepare();
  assert.equal(ads.builds, builds);
});
