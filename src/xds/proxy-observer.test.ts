import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObservedProxy, ProxyObserver } from "#model/ports.ts";
import { CLUSTER_TYPE, HEALTH_TYPE } from "#protocol/messages/type-urls.ts";
import { startAds } from "../../test/support/ads-fixture.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";

/** Notes what it hears; refuses proxies of the given id. */
function notingObserver(refused = ""): { readonly heard: string[]; readonly observer: ProxyObserver } {
  const heard: string[] = [];
  const idOf = ({ proxy }: ObservedProxy) => proxy.id;
  const observer: ProxyObserver = {
    connected: (observed) => {
      heard.push(`${idOf(observed)} came`);
      return idOf(observed) === refused ? "not welcome" : undefined;
    },
    disconnected: (observed) => void heard.push(`${idOf(observed)} went`),
    health: (observed, problem) => void heard.push(`${idOf(observed)} ${problem ?? "is well"}`),
  };
  return { heard, observer };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

for (const method of ["DeltaAggregatedResources", "StreamAggregatedResources"]) {
  test(`an observer hears of a proxy's coming, health and going (${method})`, { timeout: 120_000 }, async () => {
    const { heard, observer } = notingObserver();
    await using ads = await startAds({ all: { [CLUSTER_TYPE]: { a: "1" } } }, { observer });
    const client = new XdsClient(ads.address, { node: nodeOf(proxyOf({ name: "vm-1" })), method });
    client.request(CLUSTER_TYPE);
    await client.take(CLUSTER_TYPE);
    client.request(HEALTH_TYPE);
    client.request(HEALTH_TYPE, { error: { code: 500, message: "port 80 is closed" } });
    await until(() => heard.length === 3);
    client[Symbol.dispose]();
    await until(() => heard.length === 4);
    assert.deepEqual(heard, [
      "vm-1.default came",
      "vm-1.default is well",
      "vm-1.default port 80 is closed",
      "vm-1.default went",
    ]);
  });
}

test("a proxy that the observer refuses is told why, and never was there", { timeout: 120_000 }, async () => {
  const { heard, observer } = notingObserver("vm-2.default");
  await using ads = await startAds({ all: {} }, { observer });
  using client = new XdsClient(ads.address, { node: nodeOf(proxyOf({ name: "vm-2" })) });
  client.request(CLUSTER_TYPE);
  const { details } = await client.ended();
  assert.match(details, /not welcome/);
  assert.deepEqual([heard, ads.server.connections()], [["vm-2.default came"], []]);
});
