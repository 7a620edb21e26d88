import assert from "node:assert/strict";
import { test } from "node:test";
import { CLUSTER_TYPE, LISTENER_TYPE } from "#protocol/messages/type-urls.ts";
import { startAds } from "../../test/support/ads-fixture.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";

const meshOfVersion = (version: string) => ({
  all: { [CLUSTER_TYPE]: { a: version }, [LISTENER_TYPE]: { l: version } },
});

test("hasSentAll is false from the moment a change is known until every proxy was sent all of it", async () => {
  await using ads = await startAds(meshOfVersion("1"));
  assert.ok(ads.server.hasSentAll, "nobody is connected");
  using client = new XdsClient(ads.address, { node: nodeOf(proxyOf()) });
  const untilSent = async () => {
    while (!ads.server.hasSentAll) await new Promise((resolve) => setImmediate(resolve));
  };
  for (const typeUrl of [CLUSTER_TYPE, LISTENER_TYPE]) {
    client.request(typeUrl);
    await client.take(typeUrl);
  }
  await untilSent();
  for (const version of ["2", "3"]) {
    ads.set(meshOfVersion(version));
    assert.equal(ads.server.hasSentAll, false, "it waits for others that may belong to it");
    const clusters = await client.next(CLUSTER_TYPE);
    assert.equal(ads.server.hasSentAll, false, "listeners wait for the answer to clusters");
    client.acknowledge(clusters);
    await client.take(LISTENER_TYPE);
    await untilSent();
  }
});
