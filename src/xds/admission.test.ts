/** Who is let in, and what a stranger can ask of the server before that. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import type { Caller } from "#model/ports.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, HEALTH_TYPE } from "#protocol/type-urls.ts";
import { type AdsFixtureOptions, startAds } from "../../test/support/ads-fixture.ts";
import { serveMethods } from "../../test/support/grpc-server.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";

const MESH = { all: { [CLUSTER_TYPE]: { a: "1" } } };
const ONE = nodeOf(proxyOf());
const CALLER: Caller = {
  identity: "spiffe://cluster.local/ns/default/sa/default",
  namespace: "default",
  serviceAccount: "default",
  provedBy: "jwt",
};

/** How a stream ends on which the client does that. */
async function refused(act: (client: XdsClient) => void, options: AdsFixtureOptions = {}, node: Uint8Array = ONE) {
  await using ads = await startAds(MESH, options);
  using client = new XdsClient(ads.address, { node });
  act(client);
  const { code, details } = await client.ended();
  assert.deepEqual(ads.server.connections(), []);
  return `${status[code]}: ${details}`;
}
const ask = (client: XdsClient) => client.request(CLUSTER_TYPE);

test("a caller who cannot be authenticated is refused", async () => {
  const authenticate = async () => {
    throw new Error("token expired");
  };
  assert.equal(await refused(ask, { authenticate }), "UNAUTHENTICATED: Cannot authenticate: token expired");
});

test("a caller cannot claim another namespace or account than it proved", async () => {
  const authenticate = async () => CALLER;
  const other = nodeOf(proxyOf({ namespace: "kube-system" }));
  assert.match(
    await refused(ask, { authenticate }, other),
    /^PERMISSION_DENIED: .*namespace "kube-system": the caller is spiffe:/,
  );
  const account = nodeOf(proxyOf({ serviceAccount: "admin" }));
  assert.match(await refused(ask, { authenticate }, account), /^PERMISSION_DENIED: .*service account "admin"/);
});

test("a caller that is what it claims is served", async () => {
  await using ads = await startAds(MESH, { authenticate: async () => CALLER });
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(CLUSTER_TYPE);
  assert.equal((await client.take(CLUSTER_TYPE)).resources.length, 1);
});

test("what is no request is refused in words", async () => {
  assert.match(
    await refused((client) => client.write(new Uint8Array([0xff, 0xff]))),
    /^INVALID_ARGUMENT: .*no DeltaDiscoveryRequest/,
  );
  assert.match(await refused(ask, {}, new Uint8Array([0x0a, 0x7f])), /^INVALID_ARGUMENT: node is not an encoded node/);
  assert.match(await refused(ask, {}, nodeOf({ ...proxyOf(), nodeId: "x" })), /^INVALID_ARGUMENT: node\.id must be/);
  assert.match(await refused((client) => client.request("")), /^INVALID_ARGUMENT: .*without type_url/);
});

test("how a workload is may be told before which proxy it has", async () => {
  for (const method of ["DeltaAggregatedResources", "StreamAggregatedResources"]) {
    await using ads = await startAds(MESH);
    using client = new XdsClient(ads.address, { method });
    client.request(HEALTH_TYPE);
    client.request(CLUSTER_TYPE, { node: ONE });
    assert.equal((await client.take(CLUSTER_TYPE)).resources.length, 1);
  }
});

test("a first request needs a node", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address);
  client.request(CLUSTER_TYPE);
  assert.match((await client.ended()).details, /first request needs a node/);
});

test("broken bytes later on end the stream too", async () => {
  await using ads = await startAds(MESH);
  using client = new XdsClient(ads.address, { node: ONE });
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  client.write(new Uint8Array([0x12, 0x50]));
  assert.equal((await client.ended()).code, status.INVALID_ARGUMENT);
});

test("who does not introduce itself in time is cut off", async () => {
  assert.match(
    await refused(() => undefined, { limits: { introductionMs: 20 } }),
    /^DEADLINE_EXCEEDED: No request with a node came in 20 ms/,
  );
});

test("an authentication that hangs is cut off", async () => {
  const authenticate = () => new Promise<undefined>(() => undefined);
  assert.match(await refused(ask, { authenticate, limits: { introductionMs: 20 } }), /^DEADLINE_EXCEEDED/);
});

test("streams of strangers are limited, and make room again when they go", async () => {
  await using ads = await startAds(MESH, { limits: { unknownStreams: 1 } });
  {
    using first = new XdsClient(ads.address, { node: ONE });
    using second = new XdsClient(ads.address, { node: ONE });
    const { code, details } = await Promise.race([first.ended(), second.ended()]);
    assert.deepEqual([code, details], [status.RESOURCE_EXHAUSTED, "Too many streams at once: try again later"]);
  }
  for (;;) {
    using client = new XdsClient(ads.address, { node: ONE });
    client.request(CLUSTER_TYPE);
    const response = await client.take(CLUSTER_TYPE).catch(() => undefined); // while the first is still on its way out
    if (response !== undefined) break;
  }
});

test("connected proxies are limited", async () => {
  await using ads = await startAds(MESH, { limits: { streams: 1 } });
  using first = new XdsClient(ads.address, { node: ONE });
  first.request(CLUSTER_TYPE);
  await first.take(CLUSTER_TYPE);
  using second = new XdsClient(ads.address, { node: ONE });
  second.request(CLUSTER_TYPE);
  assert.match((await second.ended()).details, /1 proxies are connected: try another replica/);
});

test("names that a proxy may ask for are limited", async () => {
  const act = (client: XdsClient) => client.request(ENDPOINT_TYPE, { subscribe: ["a", "b", "c"] });
  assert.match(
    await refused(act, { limits: { names: 2 } }),
    /^RESOURCE_EXHAUSTED: Cannot subscribe to 3 names: 2 are allowed/,
  );
});

test("messages and headers beyond a size are refused before anybody looks at them", async () => {
  const authenticate = async () => assert.fail("looked at it");
  const big = (client: XdsClient) => client.write(new Uint8Array(2_000));
  assert.match(await refused(big, { maxMessageBytes: 1_000 }), /^RESOURCE_EXHAUSTED/);
  await using ads = await startAds(MESH, { authenticate });
  using client = new XdsClient(ads.address, { node: ONE, headers: { authorization: `Bearer ${"x".repeat(100_000)}` } });
  assert.notEqual((await client.ended()).code, status.OK);
});

test("what a caller claims is not compared where that check is off", async () => {
  await using ads = await startAds(MESH, { authenticate: async () => CALLER, checksIdentity: false });
  using client = new XdsClient(ads.address, { node: nodeOf(proxyOf({ namespace: "kube-system" })) });
  ask(client);
  await client.take(CLUSTER_TYPE);
  const [connected] = ads.server.connections();
  assert.deepEqual(connected?.proxy.verified, { namespace: "default", serviceAccount: "default" });
});

test("more streams a second than allowed wait, and are refused when that takes too long", async () => {
  await using ads = await startAds(MESH, { limits: { requestsPerSecond: 0.5 } });
  using first = new XdsClient(ads.address, { node: ONE });
  ask(first);
  await first.take(CLUSTER_TYPE);
  using second = new XdsClient(ads.address, { node: ONE });
  ask(second);
  assert.equal((await second.ended()).code, status.RESOURCE_EXHAUSTED);
});

test("silent streams on one port keep nobody from another", async () => {
  await using ads = await startAds(MESH, { limits: { unknownStreams: 1, streams: 1 } });
  await using other = await serveMethods(ads.server.service(async () => CALLER));
  using proxy = new XdsClient(ads.address, { node: ONE });
  ask(proxy);
  await proxy.take(CLUSTER_TYPE);
  using _silent = new XdsClient(ads.address);
  using refusedOne = new XdsClient(ads.address, { node: ONE });
  ask(refusedOne);
  assert.equal((await refusedOne.ended()).code, status.RESOURCE_EXHAUSTED);
  using secure = new XdsClient(other.address, { node: ONE });
  ask(secure);
  await secure.take(CLUSTER_TYPE);
});
