/** What a stream can ask for at most, and that what it asked for before does not slow its next requests down. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "#protocol/messages/type-urls.ts";
import { startAds } from "../../../test/support/ads-fixture.ts";
import { proxyOf } from "../../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../../test/support/xds-client.ts";

const MESH = { all: { [CLUSTER_TYPE]: { a: "1" } } };
const ONE = nodeOf(proxyOf());
const METHODS = ["DeltaAggregatedResources", "StreamAggregatedResources"];

for (const method of METHODS) {
  test(`a stream over ${method} that asks for ever more types is refused after a few dozen`, async () => {
    await using ads = await startAds(MESH);
    using client = new XdsClient(ads.address, { node: ONE, method });
    for (let i = 0; i < 20_000; i++) client.request(`type.googleapis.com/made.up.Type${i}`);
    const { code, details } = await client.ended();
    assert.deepEqual([status[code], details], ["RESOURCE_EXHAUSTED", "Cannot subscribe to 33 types: 32 are allowed"]);
    using other = new XdsClient(ads.address, { node: ONE, method });
    other.request(CLUSTER_TYPE);
    await other.take(CLUSTER_TYPE);
  });
}

test("names and versions that a stream says it has are limited as those that it asks for", async () => {
  await using ads = await startAds(MESH, { limits: { names: 100 } });
  using client = new XdsClient(ads.address, { node: ONE });
  const initialVersions = new Map(Array.from({ length: 101 }, (_, i) => [`c${i}`, "1"]));
  client.request(CLUSTER_TYPE, { initialVersions });
  assert.match((await client.ended()).details, /Cannot subscribe to 101 names: 100 are allowed/);
});

test("names of a stream are limited in their sum, and names that it gave up do not count", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, { node: ONE });
  const thousand = (from: number) => Array.from({ length: 1_000 }, (_, i) => `${from + i}`.padEnd(4_000, "x"));
  client.request(ENDPOINT_TYPE, { subscribe: thousand(0) });
  for (let i = 0; i < 5; i++) {
    client.request(ENDPOINT_TYPE, { unsubscribe: thousand(1_000 * i) });
    client.request(ENDPOINT_TYPE, { subscribe: thousand(1_000 * (i + 1)) });
  }
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  for (let i = 10; i < 13; i++) client.request(ENDPOINT_TYPE, { subscribe: thousand(1_000 * i) });
  assert.match((await client.ended()).details, /Cannot subscribe to names of more than 8388608 characters/);
});

test("a request beyond a limit is refused in words", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(ENDPOINT_TYPE, { subscribe: ["x".repeat(5_000)] });
  const { code, details } = await client.ended();
  assert.equal(status[code], "RESOURCE_EXHAUSTED");
  assert.match(details, /Cannot take the request: a name or version has 5000 bytes: at most 4096 are allowed/);
});
