import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { createLogger } from "#lib/log/log.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
} from "#protocol/messages/type-urls.ts";
import { startAds } from "../../test/support/ads-fixture.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";
import type { Labels, Metrics, XdsMetric } from "./metrics/metrics.ts";

const MESH = {
  all: {
    [CLUSTER_TYPE]: { a: "1", b: "1" },
    [ENDPOINT_TYPE]: { a: "e1", b: "e1" },
    [LISTENER_TYPE]: { l: "l1" },
    [ROUTE_TYPE]: { r: "r1" },
    [NAME_TABLE_TYPE]: { names: "n1" },
  },
};
const ONE = nodeOf(proxyOf());
const names = (response: { resources: readonly { name: string }[] }) => response.resources.map(({ name }) => name);

class RecordingMetrics implements Metrics {
  readonly seen = new Map<string, number>();
  count(name: XdsMetric, labels: Labels = {}): void {
    this.set(name, (this.seen.get(key(name, labels)) ?? 0) + 1, labels);
  }
  set(name: XdsMetric, value: number, labels: Labels = {}): void {
    this.seen.set(key(name, labels), value);
  }
  observe(name: XdsMetric, value: number, labels: Labels = {}): void {
    this.set(name, value, labels);
  }
}
const key = (name: XdsMetric, labels: Labels) =>
  `${name} ${Object.entries(labels)
    .map(([l, v]) => `${l}=${v}`)
    .join()}`;

test("a proxy gets what it asks for, each resource with a version", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(CLUSTER_TYPE);
  const clusters = await client.take(CLUSTER_TYPE);
  assert.deepEqual(names(clusters), ["a", "b"]);
  assert.ok(clusters.resources.every(({ version }) => version.length === 16));
  client.request(ENDPOINT_TYPE, { subscribe: ["b", "x"] });
  const endpoints = await client.take(ENDPOINT_TYPE);
  assert.deepEqual([names(endpoints), endpoints.removed], [["b"], ["x"]]);
  assert.equal(Buffer.from(endpoints.resources[0]?.value ?? []).toString(), "e1");
  client.request(LISTENER_TYPE);
  client.request(NAME_TABLE_TYPE);
  assert.deepEqual(names(await client.take(LISTENER_TYPE)), ["l"]);
  assert.deepEqual(names(await client.take(NAME_TABLE_TYPE)), ["names"]);
});

test("a change reaches the proxy as the one resource that changed", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  ads.set({ all: { ...MESH.all, [CLUSTER_TYPE]: { a: "1", b: "2" } } });
  assert.deepEqual(names(await client.take(CLUSTER_TYPE)), ["b"]);
});

test("what was asked for before it existed is sent when it does, though nothing else changed", async () => {
  await using ads = await startAds(MESH);
  for (const method of ["DeltaAggregatedResources", "StreamAggregatedResources"]) {
    using client = new XdsClient(ads.address, { node: ONE, method });
    client.request(ENDPOINT_TYPE, { subscribe: ["b", "x"] });
    await client.take(ENDPOINT_TYPE);
    ads.set({ all: { ...MESH.all, [ENDPOINT_TYPE]: { ...MESH.all[ENDPOINT_TYPE], x: "later" } } });
    const [come] = (await client.take(ENDPOINT_TYPE)).resources;
    assert.equal(Buffer.from(come?.value ?? []).toString(), "later");
    ads.set(MESH);
  }
});

test("a snapshot that changes nothing for a proxy sends nothing", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  ads.set(MESH);
  ads.set({ all: { ...MESH.all, [CLUSTER_TYPE]: { a: "3", b: "1" } } });
  assert.deepEqual(names(await client.take(CLUSTER_TYPE)), ["a"]);
  assert.deepEqual(client.waiting, []);
});

test("a proxy that comes back with the same versions gets only what changed since", async () => {
  await using ads = await startAds(MESH);
  const initialVersions = new Map<string, string>();
  {
    using client = new XdsClient(ads.address, { node: ONE });
    client.request(CLUSTER_TYPE);
    for (const { name, version } of (await client.take(CLUSTER_TYPE)).resources) initialVersions.set(name, version);
    ads.set({ all: { ...MESH.all, [CLUSTER_TYPE]: { a: "1", c: "1" } } });
    await client.next(CLUSTER_TYPE);
  }
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(CLUSTER_TYPE, { initialVersions });
  assert.deepEqual(names(await client.take(CLUSTER_TYPE)), ["c"]);
  assert.deepEqual((await client.take(CLUSTER_TYPE)).removed, ["b"]);
});

test("resources are built once for all proxies that have them, and parts of their own apart", async () => {
  const one = proxyOf({ name: "one" });
  const two = proxyOf({ name: "two", ip: "10.0.0.2" });
  const own = { [one.id]: { [LISTENER_TYPE]: { in: "1" } }, [two.id]: { [LISTENER_TYPE]: { in: "2" } } };
  await using ads = await startAds({ ...MESH, ...own });
  const values = [];
  for (const proxy of [one, two]) {
    using client = new XdsClient(ads.address, { node: nodeOf(proxy) });
    client.request(LISTENER_TYPE);
    const { resources } = await client.take(LISTENER_TYPE);
    values.push(resources.map(({ value }) => Buffer.from(value).toString()));
    if (proxy === one) {
      using other = new XdsClient(ads.address, { node: nodeOf(two) });
      other.request(LISTENER_TYPE);
      await other.take(LISTENER_TYPE);
      assert.equal(ads.builds, 3);
    }
  }
  assert.deepEqual(values, [
    ["l1", "1"],
    ["l1", "2"],
  ]);
});

test("proxies that are told the same get the same response", async () => {
  await using ads = await startAds(MESH);
  using one = new XdsClient(ads.address, { node: ONE });
  using two = new XdsClient(ads.address, { node: nodeOf(proxyOf({ name: "two", ip: "10.0.0.2" })) });
  for (const client of [one, two]) client.request(CLUSTER_TYPE);
  assert.equal((await one.take(CLUSTER_TYPE)).nonce, (await two.take(CLUSTER_TYPE)).nonce);
});

test("after the last proxy left nothing is held for it", async () => {
  await using ads = await startAds(MESH);
  {
    using client = new XdsClient(ads.address, { node: ONE });
    client.request(CLUSTER_TYPE);
    client.request(ENDPOINT_TYPE, { subscribe: ["a"] });
    await client.take(CLUSTER_TYPE);
    await client.take(ENDPOINT_TYPE);
    assert.deepEqual(ads.server.held, { parts: 3, resources: 3 });
    assert.equal(ads.server.connections().length, 1);
  }
  while (ads.server.held.parts > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(ads.server.held, { parts: 0, resources: 0 });
  assert.deepEqual(ads.server.connections(), []);
});

test("resources that are gone are not held", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(CLUSTER_TYPE);
  client.request(ENDPOINT_TYPE, { subscribe: ["a", "b"] });
  await client.take(CLUSTER_TYPE);
  await client.take(ENDPOINT_TYPE);
  ads.set({ all: { [CLUSTER_TYPE]: { a: "1" }, [ENDPOINT_TYPE]: { a: "e1" } } });
  assert.deepEqual((await client.take(CLUSTER_TYPE)).removed, ["b"]);
  assert.deepEqual((await client.take(ENDPOINT_TYPE)).removed, ["b"]);
  assert.equal(ads.server.held.resources, 2);
});

test("clusters that change with their endpoints go first: a new endpoint may have an identity that they have to know", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, { node: ONE });
  using late = new XdsClient(ads.address, { node: ONE });
  for (const each of [client, late]) {
    each.request(CLUSTER_TYPE);
    each.request(ENDPOINT_TYPE, { subscribe: ["a"] });
    await each.take(CLUSTER_TYPE);
    await each.take(ENDPOINT_TYPE);
  }
  ads.set({ all: { [CLUSTER_TYPE]: { a: "2", b: "1" }, [ENDPOINT_TYPE]: { a: "e2", b: "e1" } } });
  for (const each of [client, late]) {
    assert.equal((await each.next()).typeUrl, CLUSTER_TYPE);
    assert.equal((await each.next()).typeUrl, ENDPOINT_TYPE);
  }
});

test("a type that is asked for while another is being built is answered with what exists", async () => {
  const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`c${i}`, "1"]));
  await using ads = await startAds({ all: { [CLUSTER_TYPE]: many, [ENDPOINT_TYPE]: many } });
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(CLUSTER_TYPE);
  while (ads.builds === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(ads.builds < 3_000, "the work is done in slices");
  client.request(ENDPOINT_TYPE, { subscribe: ["c1", "c2"] });
  const endpoints = await client.take(ENDPOINT_TYPE);
  assert.deepEqual([names(endpoints), endpoints.removed], [["c1", "c2"], []]);
});

test("a rejected resource is logged with what it was made from, and the others are sent again", async () => {
  const lines: string[] = [];
  await using ads = await startAds(MESH, { log: createLogger({ write: (line) => lines.push(line) }) });
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(CLUSTER_TYPE);
  client.reject(await client.next(CLUSTER_TYPE), "Error adding/updating cluster(s) b: no");
  assert.deepEqual(names(await client.take(CLUSTER_TYPE)), ["a"]);
  const line = lines.find((text) => text.includes("rejected"));
  assert.match(line ?? "", /\twarn\tads\t.*type=cds node=sidecar~.* resources=b .*reason=Error adding/);
  assert.equal(ads.server.connections()[0]?.types.get(CLUSTER_TYPE)?.rejected.length, 9);
});

test("an error while planning leaves the proxy with what it has and serves the next change", async () => {
  let broken = false;
  let plans = 0;
  const onPlan = () => {
    plans++;
    if (broken) throw new Error("bug");
  };
  await using ads = await startAds(MESH, { onPlan });
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  plans = 1;
  broken = true;
  ads.set({ all: { ...MESH.all, [CLUSTER_TYPE]: {} } });
  while (plans < 2) await new Promise((resolve) => setImmediate(resolve));
  broken = false;
  ads.set({ all: { ...MESH.all, [CLUSTER_TYPE]: { a: "1", b: "1", c: "1" } } });
  const response = await client.take(CLUSTER_TYPE);
  assert.deepEqual([names(response), response.removed], [["c"], []]);
});

test("pushes, rejections and connected proxies are counted under Istio's names", async () => {
  const metrics = new RecordingMetrics();
  await using ads = await startAds(MESH, { metrics });
  {
    using client = new XdsClient(ads.address, { node: ONE });
    client.request(CLUSTER_TYPE);
    client.reject(await client.next(CLUSTER_TYPE), "b is bad");
    await client.take(CLUSTER_TYPE);
    client.request(CLUSTER_TYPE, { nonce: "old" });
    while (!metrics.seen.has("pilot_xds_expired_nonce type=cds")) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(metrics.seen.get("pilot_xds version=1.29.6"), 1);
  }
  while (metrics.seen.get("pilot_xds version=1.29.6") !== 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(metrics.seen.get("pilot_xds_pushes type=cds"), 2);
  assert.equal(metrics.seen.get("pilot_total_xds_rejects type=cds"), 1);
  assert.equal(metrics.seen.get(`pilot_xds_cds_reject node=${proxyOf().id},err=Internal`), 1);
  for (const name of [
    "pilot_proxy_convergence_time",
    "pilot_xds_send_time",
    "pilot_debounce_time",
    "pilot_xds_recv_max",
  ]) {
    assert.ok(metrics.seen.has(`${name} `), name);
  }
});

test("streams end when the server stops", async () => {
  const ads = await startAds(MESH);
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  await ads[Symbol.asyncDispose]();
  assert.equal((await client.ended()).code, status.UNAVAILABLE);
});
