/** A replica that ends hands its proxies over: nothing is sent twice, nothing is lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import type { DeltaEnvelope } from "#protocol/messages/delta-response.ts";
import { CLUSTER_TYPE, LISTENER_TYPE } from "#protocol/messages/type-urls.ts";
import { TestControlPlane } from "../../test/support/control-plane.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";

const NODE = nodeOf(proxyOf({ ip: "10.1.0.1" }));

function serviceEntry(name: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: default}
spec:
  hosts: [${name}.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.2.0.1}]
`;
}

function versionsOf({ resources }: DeltaEnvelope): ReadonlyMap<string, string> {
  return new Map(resources.map(({ name, version }) => [name, version]));
}

test("proxies of a replica that ends go on at another with what they have", async () => {
  const files = { "shop.yaml": serviceEntry("shop") };
  await using first = new TestControlPlane({ files, flags: ["--shutdownDuration=5s"] });
  await using second = new TestControlPlane({ files });
  await Promise.all([first.ready(), second.ready()]);
  using before = new XdsClient(await first.address("gRPC discovery service"), { node: NODE });
  before.request(CLUSTER_TYPE);
  const clusters = versionsOf(await before.take(CLUSTER_TYPE));
  before.request(LISTENER_TYPE);
  const listeners = versionsOf(await before.take(LISTENER_TYPE));
  assert.ok(clusters.size > 0 && listeners.size > 0);

  const http = await first.address("HTTP service");
  const stopped = first.stop();
  const { code, details } = await before.ended();
  assert.equal(code, status.UNAVAILABLE, details);
  // By now it is out of the rotation, or gone.
  const ready = await fetch(`http://${http}/ready`).then(
    ({ status: answer }) => answer,
    () => 503,
  );
  assert.equal(ready, 503);

  using after = new XdsClient(await second.address("gRPC discovery service"), { node: NODE });
  after.request(CLUSTER_TYPE, { initialVersions: clusters });
  const again = await after.take(CLUSTER_TYPE);
  assert.deepEqual([again.resources.map(({ name }) => name), again.removed], [[], []], "replicas agree on versions");
  after.request(LISTENER_TYPE, { initialVersions: listeners });
  assert.deepEqual((await after.take(LISTENER_TYPE)).resources, []);
  second.write("more.yaml", serviceEntry("more"));
  const changed = await after.take(CLUSTER_TYPE);
  assert.deepEqual([...versionsOf(changed).keys()], ["outbound|80||more.example.com"]);
  await stopped;
});

test("what changed while a proxy moved is sent by the replica that it comes to", async () => {
  const files = { "shop.yaml": serviceEntry("shop") };
  await using first = new TestControlPlane({ files });
  await using second = new TestControlPlane({ files: { ...files, "more.yaml": serviceEntry("more") } });
  await Promise.all([first.ready(), second.ready()]);
  using before = new XdsClient(await first.address("gRPC discovery service"), { node: NODE });
  before.request(CLUSTER_TYPE);
  const clusters = versionsOf(await before.take(CLUSTER_TYPE));
  await first.stop();
  await before.ended();
  using after = new XdsClient(await second.address("gRPC discovery service"), { node: NODE });
  after.request(CLUSTER_TYPE, { initialVersions: new Map(clusters).set("outbound|80||gone.example.com", "1") });
  const { resources } = await after.take(CLUSTER_TYPE);
  assert.deepEqual(
    resources.map(({ name }) => name),
    ["outbound|80||more.example.com"],
  );
  after.request(LISTENER_TYPE);
  await after.take(LISTENER_TYPE);
  const { removed } = await after.take(CLUSTER_TYPE);
  assert.deepEqual(removed, ["outbound|80||gone.example.com"], "last, when nothing names it any more");
});
