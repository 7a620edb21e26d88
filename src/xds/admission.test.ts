/** Who is let in, and what a stranger can ask of the server before that. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { Admission, CONNECTION_BYTES, type PeerRefusal, STREAM_BYTES } from "#lib/admission/admission.ts";
import type { Caller } from "#model/ports.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, HEALTH_TYPE } from "#protocol/messages/type-urls.ts";
import { type AdsFixtureOptions, startAds } from "../../test/support/ads-fixture.ts";
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

test("silent streams give way to a newcomer, and to nobody once they introduced themselves", async () => {
  const refusals: PeerRefusal[] = [];
  const limits = { strangerBytes: CONNECTION_BYTES.http2 + 3 * STREAM_BYTES };
  const admission = new Admission({ limits, onRefused: (refusal) => refusals.push(refusal) });
  await using ads = await startAds(MESH, { admission });
  using served = new XdsClient(ads.address, { node: ONE });
  ask(served);
  await served.take(CLUSTER_TYPE);
  using silent = new XdsClient(ads.address, { node: ONE });
  const gone = silent.ended();
  using newcomer = new XdsClient(ads.address, { node: ONE });
  ask(newcomer);
  await newcomer.take(CLUSTER_TYPE);
  assert.notEqual((await gone).code, status.OK);
  assert.deepEqual(refusals[0], { what: "connection", reason: "no_room", peer: "127.0.0.1" });
  assert.equal(ads.server.connections().length, 2);
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

test("unauthenticated callers, and callers of one identity, take at most half of the places", async () => {
  await using ads = await startAds(MESH, { limits: { streams: 4 } });
  using clients = new DisposableStack();
  const connect = () => clients.use(new XdsClient(ads.address, { node: ONE }));
  for (const client of [connect(), connect()]) {
    ask(client);
    await client.take(CLUSTER_TYPE);
  }
  const third = connect();
  ask(third);
  assert.match((await third.ended()).details, /2 streams of unauthenticated callers are connected/);
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
