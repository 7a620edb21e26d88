/** State-of-the-world streams, and streams of a single type. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import { ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { readText } from "#lib/wire/read.ts";
import type { DeltaEnvelope } from "#protocol/messages/delta-response.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE, SECRET_TYPE } from "#protocol/messages/type-urls.ts";
import { startAds } from "../../test/support/ads-fixture.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";

const MESH = {
  all: {
    [CLUSTER_TYPE]: { a: "1", b: "1" },
    [ENDPOINT_TYPE]: { a: "\n\u0001a", b: "\n\u0001b" },
    [LISTENER_TYPE]: { l: "\n\u0001l" },
    [ROUTE_TYPE]: { r: "\n\u0001r" },
  },
};
const NODE = nodeOf(proxyOf());
const STATE = { node: NODE, method: "StreamAggregatedResources" };
const withClusters = (clusters: Readonly<Record<string, string>>) => ({
  all: { ...MESH.all, [CLUSTER_TYPE]: clusters },
});
const clusters = ({ resources }: DeltaEnvelope) =>
  resources
    .map(({ value }) => fromBinary(ClusterSchema, value))
    .map(({ name, altStatName }) => `${name}@${altStatName}`);
const names = ({ resources }: DeltaEnvelope) => resources.map(({ value }) => readText(value, 1));

test("a change of one cluster sends all of them", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, STATE);
  client.request(CLUSTER_TYPE);
  assert.deepEqual(clusters(await client.take(CLUSTER_TYPE)), ["a@1", "b@1"]);
  ads.set(withClusters({ a: "1", b: "2" }));
  assert.deepEqual(clusters(await client.take(CLUSTER_TYPE)).sort(), ["a@1", "b@2"]);
});

test("a cluster that is gone stays until listeners and routes that may use it are replaced", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, STATE);
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  client.request(LISTENER_TYPE);
  await client.take(LISTENER_TYPE);
  ads.set({ all: { ...MESH.all, [CLUSTER_TYPE]: { b: "1", c: "1" }, [LISTENER_TYPE]: { k: "\n\u0001k" } } });
  assert.deepEqual(clusters(await client.take(CLUSTER_TYPE)).sort(), ["a@1", "b@1", "c@1"]);
  assert.deepEqual(names(await client.take(LISTENER_TYPE)), ["k"]);
  assert.deepEqual(clusters(await client.take(CLUSTER_TYPE)).sort(), ["b@1", "c@1"]);
});

test("endpoints come by name: new names are answered, known ones not again, missing ones with empty ones", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, STATE);
  client.request(ENDPOINT_TYPE, { subscribe: ["a", "x"] });
  const first = await client.take(ENDPOINT_TYPE);
  assert.deepEqual(names(first), ["a", "x"]);
  client.request(ENDPOINT_TYPE, { subscribe: ["a", "x", "b"], nonce: first.nonce });
  const second = await client.take(ENDPOINT_TYPE);
  assert.deepEqual(names(second), ["b"]);
  client.request(ENDPOINT_TYPE, { subscribe: ["b"], nonce: second.nonce });
  ads.set({ all: { ...MESH.all, [ENDPOINT_TYPE]: { a: "\n\u0001a\u0012\u0000", b: "\n\u0001b\u0012\u0000" } } });
  assert.deepEqual(names(await client.take(ENDPOINT_TYPE)), ["b"]);
});

test("a type of which there is nothing is answered with an empty response", async () => {
  await using ads = await startAds({});
  using client = new XdsClient(ads.address, STATE);
  client.request(CLUSTER_TYPE);
  client.request(SECRET_TYPE, { subscribe: ["s"] });
  assert.deepEqual((await client.take(CLUSTER_TYPE)).resources, []);
  assert.deepEqual((await client.take(SECRET_TYPE)).resources, []);
});

test("clusters by name are answered with these alone", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, STATE);
  client.request(CLUSTER_TYPE, { subscribe: ["b", "x"] });
  assert.deepEqual(clusters(await client.take(CLUSTER_TYPE)), ["b@1"]);
});

test("a rejected cluster is repeated in its last good version, beside the newest of the others", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, STATE);
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  ads.set(withClusters({ a: "2", b: "2", c: "1" }));
  client.reject(await client.next(CLUSTER_TYPE), "Error adding/updating cluster(s) b: no");
  assert.deepEqual(clusters(await client.take(CLUSTER_TYPE)).sort(), ["a@2", "b@1", "c@1"]);
});

test("a rejection that names nobody narrows the culprit down while the rest stays in place", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, STATE);
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  ads.set(withClusters({ a: "2", b: "2" }));
  client.reject(await client.next(CLUSTER_TYPE), "something is wrong");
  assert.deepEqual(clusters(await client.take(CLUSTER_TYPE)).sort(), ["a@2", "b@1"]);
  client.reject(await client.next(CLUSTER_TYPE), "something is wrong");
  ads.set(withClusters({ a: "2", b: "2", c: "1" }));
  assert.deepEqual(clusters(await client.take(CLUSTER_TYPE)).sort(), ["a@2", "b@1", "c@1"]);
});

for (const [method, typeUrl, subscribe] of [
  ["StreamListeners", LISTENER_TYPE, []],
  ["DeltaListeners", LISTENER_TYPE, []],
  ["StreamRoutes", ROUTE_TYPE, ["r"]],
  ["DeltaRoutes", ROUTE_TYPE, ["r"]],
  ["StreamEndpoints", ENDPOINT_TYPE, ["a"]],
  ["DeltaEndpoints", ENDPOINT_TYPE, ["a"]],
  ["StreamClusters", CLUSTER_TYPE, ["a"]],
  ["DeltaClusters", CLUSTER_TYPE, ["a"]],
] as const) {
  test(`${method} serves its type without being told it, and no other`, async () => {
    await using ads = await startAds(MESH);
    using client = new XdsClient(ads.address, { node: NODE, method });
    client.request("", { subscribe });
    const response = await client.next(typeUrl);
    assert.equal(response.resources.length, 1);
    client.request(SECRET_TYPE, { subscribe: ["s"] });
    const { code, details } = await client.ended();
    assert.equal(code, status.INVALID_ARGUMENT);
    assert.match(details, /Secret: .* is about/);
  });
}

test("a request that is none ends the stream with a word about it", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, { method: "StreamAggregatedResources" });
  client.write(Buffer.from([0xff, 0xff]));
  const { code, details } = await client.ended();
  assert.equal(code, status.INVALID_ARGUMENT);
  assert.match(details, /no DiscoveryRequest/);
});
