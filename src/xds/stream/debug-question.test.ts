import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import type { Caller, DebugAnswers, StatusAnswers } from "#model/ports.ts";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import { startAds } from "../../../test/support/ads-fixture.ts";
import { proxyOf } from "../../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../../test/support/xds-client.ts";

const DEBUG = "istio.io/debug";
const CALLER: Caller = {
  identity: "spiffe://cluster.local/ns/default/sa/default",
  namespace: "default",
  serviceAccount: "default",
  provedBy: "jwt",
};
const debug: DebugAnswers = (page, { namespace }) =>
  page === "syncz" ? { body: `syncz for ${namespace}` } : { refused: "no such page" };
const authenticate = async () => CALLER;

for (const method of ["DeltaAggregatedResources", "StreamAggregatedResources"]) {
  test(`a page is answered over ${method}, before the caller says which proxy it is and beside its subscriptions`, async () => {
    await using ads = await startAds({ all: { [CLUSTER_TYPE]: { a: "1" } } }, { debug, authenticate });
    using stranger = new XdsClient(ads.address, { method });
    stranger.request(DEBUG, { subscribe: ["syncz"] });
    const { resources } = await stranger.next(DEBUG);
    assert.deepEqual(
      resources.map(({ value }) => Buffer.from(value).toString()),
      ["syncz for default"],
    );
    using proxy = new XdsClient(ads.address, { method, node: nodeOf(proxyOf()) });
    proxy.request(CLUSTER_TYPE);
    await proxy.take(CLUSTER_TYPE);
    proxy.request(DEBUG, { subscribe: ["syncz"] });
    await proxy.next(DEBUG);
    assert.equal(ads.server.connections()[0]?.types.has(DEBUG), false);
  });
}

test("callers without proof, several pages and unknown ones are refused", async () => {
  const ended = async (authenticated: boolean, subscribe: readonly string[]) => {
    await using ads = await startAds({}, { debug, ...(authenticated && { authenticate }) });
    using client = new XdsClient(ads.address);
    client.request(DEBUG, { subscribe });
    return status[(await client.ended()).code];
  };
  assert.equal(await ended(false, ["syncz"]), "UNAUTHENTICATED");
  assert.equal(await ended(true, ["syncz", "edsz"]), "INVALID_ARGUMENT");
  assert.equal(await ended(true, []), "INVALID_ARGUMENT");
  assert.equal(await ended(true, ["other"]), "PERMISSION_DENIED");
});

test("messages about proxies are answered for their own type, and an acknowledgement is no question", async () => {
  const asked: unknown[] = [];
  const answers: StatusAnswers = (question) => {
    asked.push(question);
    return [{ name: "web.shop", typeUrl: "type.googleapis.com/x", value: Buffer.from("state") }];
  };
  await using ads = await startAds({}, { status: answers, authenticate });
  using client = new XdsClient(ads.address, { method: "StreamAggregatedResources" });
  client.request("istio.io/debug/syncz");
  const response = await client.next("istio.io/debug/syncz");
  assert.equal(response.resources[0]?.value.toString(), "state");
  client.acknowledge(response);
  // istioctl's first question has a nonce that we never gave.
  client.acknowledge({ ...response, nonce: "now" });
  await client.next("istio.io/debug/syncz");
  client.request("istio.io/debug/config_dump", { subscribe: ["web.shop"] });
  await client.next("istio.io/debug/config_dump");
  assert.deepEqual(asked, [
    { page: "syncz", names: [] },
    { page: "syncz", names: [] },
    { page: "config_dump", names: ["web.shop"] },
  ]);
});
