import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import { translated } from "../../../test/support/translated.ts";
import { viewsOf } from "../views/views.ts";

const entry = (name: string, resolution: string) =>
  object("ServiceEntry", name, {
    hosts: [`${name}.local.test`],
    ports: [{ number: 80, name: "http", protocol: "HTTP" }],
    resolution,
    ...(resolution === "STATIC" && { endpoints: [{ address: "10.1.0.1" }] }),
  });
const YAML = entry("dns", "DNS") + entry("robin", "DNS_ROUND_ROBIN") + entry("static", "STATIC");
const LOCAL = { serviceSettings: [{ settings: { clusterLocal: true }, hosts: ["*.local.test"] }] };
const seenFrom = (clusterId: string, mesh: object) =>
  [...translated(meshOf(YAML, { mesh }), proxyOf({ metadata: { CLUSTER_ID: clusterId } })).clusters.keys()]
    .filter((name) => name.startsWith("outbound|"))
    .map((name) => name.split("|")[3]?.split(".")[0]);

test("hosts that are of one cluster are looked up by proxies of that cluster only", () => {
  assert.deepEqual(seenFrom("Kubernetes", LOCAL), ["dns", "robin", "static"]);
  assert.deepEqual(seenFrom("other", LOCAL), ["static"]);
  assert.deepEqual(seenFrom("other", {}), ["dns", "robin", "static"]);
});

test("the cluster of a proxy decides its clusters only where such hosts are looked up", () => {
  const decides = (mesh: object, yaml = YAML) =>
    viewsOf(meshOf(yaml, { mesh }), proxyOf({ metadata: { CLUSTER_ID: "a" } })).outbound.clusterId;
  assert.equal(decides(LOCAL), "a");
  assert.equal(decides({}), undefined);
  assert.equal(decides(LOCAL, entry("static", "STATIC")), undefined);
});
