/** Clients of the XDS socket that ask for more than their share. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import { deltaRequest, setUp } from "../../../test/support/xds-proxy-rig.ts";

const RESOURCE_EXHAUSTED = 8;

test("streams on the XDS socket are bounded, since each has a connection to the control plane", async (t) => {
  const { envoy, upstreams } = await setUp(t);
  const streams = Array.from({ length: 64 }, () => envoy());
  for (const stream of streams) stream.resume().write(deltaRequest(CLUSTER_TYPE));
  await eventually("64 streams", () => upstreams.length === 64, 30_000);
  const refused = envoy();
  const code = new Promise((resolve) => refused.on("status", (status) => resolve(status.code)));
  refused.resume().write(deltaRequest(CLUSTER_TYPE));
  assert.deepEqual([await code, upstreams.length], [RESOURCE_EXHAUSTED, 64]);
  streams[0]?.cancel();
  await eventually("a place", async () => {
    envoy().resume().write(deltaRequest(CLUSTER_TYPE));
    return upstreams.length === 65;
  });
});

test("a client that sends requests which the control plane does not read loses its stream", async (t) => {
  const { envoy, connected } = await setUp(t);
  const flood = envoy().resume();
  const ended = new Promise<{ readonly code: number }>((resolve) => flood.on("error", resolve));
  flood.write(deltaRequest(CLUSTER_TYPE));
  (await connected()).stream.pause();
  const large = deltaRequest(CLUSTER_TYPE, { resourceNamesSubscribe: ["x".repeat(1024 * 1024)] });
  for (let sent = 0; sent < 64; sent++) flood.write(large);
  assert.equal((await ended).code, RESOURCE_EXHAUSTED);
  const next = envoy().resume();
  next.write(deltaRequest(CLUSTER_TYPE));
  await connected(2);
});
