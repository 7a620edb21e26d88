import assert from "node:assert/strict";
import http2 from "node:http2";
import { test } from "node:test";
import { EMPTY_REQUEST, formatDeltaRequest } from "#protocol/delta-request.ts";
import { CLUSTER_TYPE, LISTENER_TYPE } from "#protocol/type-urls.ts";
import { startAds } from "../../test/support/ads-fixture.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";
import type { XdsMetric } from "./metrics.ts";

/** More than the window that a client opens which does not read. */
const LARGE = "x".repeat(1_000_000);
const meshOfVersion = (version: string) => ({ all: { [LISTENER_TYPE]: { l: version + LARGE }, [CLUSTER_TYPE]: {} } });
/** A client that asks and then reads nothing at all, not even into its own buffers. */
function neverReading(address: string): Disposable {
  const session = http2.connect(`http://${address}`);
  session.on("error", () => undefined);
  const stream = session.request({
    ":method": "POST",
    ":path": "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("error", () => undefined);
  const node = nodeOf(proxyOf({ name: "stuck" }));
  const message = formatDeltaRequest({ ...EMPTY_REQUEST, node, typeUrl: LISTENER_TYPE });
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  stream.write(Buffer.concat([head, message]));
  return { [Symbol.dispose]: () => session.destroy() };
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
