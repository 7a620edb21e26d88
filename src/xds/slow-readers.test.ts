import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY_REQUEST, formatDeltaRequest } from "#protocol/messages/delta-request.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE } from "#protocol/messages/type-urls.ts";
import { startAds } from "../../test/support/ads-fixture.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { UnreadCall } from "../../test/support/unread-call.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";
import type { XdsMetric } from "./metrics/metrics.ts";
import { type Clock, SYSTEM_CLOCK } from "./timing/clock.ts";

/** More than the window that a client opens which does not read. */
const LARGE = "x".repeat(1_000_000);
const meshOfVersion = (version: string) => ({ all: { [LISTENER_TYPE]: { l: version + LARGE }, [CLUSTER_TYPE]: {} } });
/** A proxy that asks and then reads nothing. */
function neverReading(address: string): Disposable {
  const node = nodeOf(proxyOf({ name: "stuck" }));
  const message = formatDeltaRequest({ ...EMPTY_REQUEST, node, typeUrl: LISTENER_TYPE });
  return new UnreadCall(
    address,
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
    message,
  );
}
const connect = (address: string, name: string) => new XdsClient(address, { node: nodeOf(proxyOf({ name })) });
const versionIn = (response: { resources: readonly { value: Uint8Array }[] }) =>
  Buffer.from(response.resources[0]?.value.subarray(0, 2) ?? []).toString();

test("a proxy that does not read holds nobody up, and gets only the newest state when it reads again", async () => {
  await using ads = await startAds(meshOfVersion("v1"), { limits: { bufferedBytes: 100_000_000 } });
  using slow = connect(ads.address, "slow");
  using quick = connect(ads.address, "quick");
  slow.pause();
  for (const client of [slow, quick]) client.request(LISTENER_TYPE);
  assert.equal(versionIn(await quick.take(LISTENER_TYPE)), "v1");
  for (const version of ["v2", "v3"]) {
    ads.set(meshOfVersion(version));
    assert.equal(versionIn(await quick.take(LISTENER_TYPE)), version);
  }
  slow.resume();
  assert.equal(versionIn(await slow.take(LISTENER_TYPE)), "v1");
  assert.equal(versionIn(await slow.take(LISTENER_TYPE)), "v3");
});

test("when too much waits to be read the others wait for their turn, and a proxy that never reads is cut off", async () => {
  const counted: XdsMetric[] = [];
  const metrics = {
    count: (name: XdsMetric) => void counted.push(name),
    set: () => undefined,
    observe: () => undefined,
  };
  await using ads = await startAds(meshOfVersion("v1"), { metrics, limits: { bufferedBytes: 500_000, sendMs: 1_000 } });
  using _stuck = neverReading(ads.address);
  while (!counted.includes("pilot_xds_pushes")) await new Promise((resolve) => setImmediate(resolve));
  using next = connect(ads.address, "next");
  next.request(LISTENER_TYPE);
  assert.equal(versionIn(await next.take(LISTENER_TYPE)), "v1");
  assert.ok(counted.includes("pilot_xds_write_timeout"));
  assert.ok(counted.indexOf("pilot_xds_write_timeout") < counted.lastIndexOf("pilot_xds_pushes"), "did not wait");
  assert.deepEqual(
    ads.server.connections().map(({ nodeId }) => nodeId.includes("next")),
    [true],
  );
});

test("a proxy that asks while its configuration is built has one response on its way at a time", async () => {
  const sendMs = 123_456;
  let onTheWay = 0;
  let most = 0;
  // Each response that has not left has a clock of its own.
  const clock: Clock = {
    now: SYSTEM_CLOCK.now,
    after: (ms, call) => {
      const cancel = SYSTEM_CLOCK.after(ms, call);
      if (ms !== sendMs) return cancel;
      most = Math.max(most, ++onTheWay);
      let isOver = false;
      return () => {
        cancel();
        if (!isOver) onTheWay--;
        isOver = true;
      };
    },
  };
  const names = Array.from({ length: 300 }, (_, i) => `c${i}`);
  const all = (text: string) => Object.fromEntries(names.map((name) => [name, text]));
  // Together more than a window, so that they take their time to leave.
  const meshOf = (version: number) => ({
    all: { [CLUSTER_TYPE]: all(`${version}${"x".repeat(10_000)}`), [ENDPOINT_TYPE]: all("0") },
  });
  await using ads = await startAds(meshOf(0), { clock, limits: { sendMs } });
  using client = connect(ads.address, "asks");
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  let asked = 0;
  // Endpoints may follow clusters before those were answered.
  const asking = setInterval(() => client.request(ENDPOINT_TYPE, { subscribe: [`c${asked++ % names.length}`] }), 1);
  for (let version = 1; version <= 30; version++) {
    ads.set(meshOf(version));
    await client.take(CLUSTER_TYPE);
    while (client.waiting.length > 0) client.acknowledge(await client.next());
  }
  clearInterval(asking);
  assert.equal(most, 1);
});
