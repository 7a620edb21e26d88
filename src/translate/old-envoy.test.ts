/** A strict Envoy refuses a whole resource for one field it does not know. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toJson } from "@bufbuild/protobuf";
import { ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { allDescriptors } from "#lib/descriptors.ts";
import { meshOf, proxyOf } from "../../test/support/mesh.ts";
import { translated } from "../../test/support/translated.ts";

const NEWER = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: outside, namespace: default}
spec: {hosts: [outside.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: outside, namespace: default}
spec:
  hosts: [outside.example]
  gateways: [mesh, entry]
  http:
  - corsPolicy: {allowOrigins: [{exact: a}]}
    mirror: {host: outside.example}
    route: [{destination: {host: outside.example}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: entry, namespace: default}
spec: {selector: {app: shop}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
`;
/** Fields of Envoy's messages that came after 1.28. */
const FIELDS = ["dnsJitter", "udpMaxQueries", "disableShadowHostSuffixAppend", "forwardNotMatchingPreflights"];

function fieldsFor(type: "sidecar" | "router", envoyVersion: string): readonly string[] {
  const { clusters, routes } = translated(meshOf(NEWER), proxyOf({ type, labels: { app: "shop" }, envoyVersion }));
  const registry = allDescriptors();
  const text = JSON.stringify([
    ...clusters.values().map((cluster) => toJson(ClusterSchema, cluster, { registry })),
    ...routes.values().map((route) => toJson(RouteConfigurationSchema, route, { registry })),
  ]);
  return FIELDS.filter((name) => text.includes(`"${name}"`));
}

for (const type of ["sidecar", "router"] as const) {
  test(`an Envoy gets no field that is newer than itself (${type})`, () => {
    assert.deepEqual(fieldsFor(type, "1.40.0"), FIELDS);
    assert.deepEqual(fieldsFor(type, ""), FIELDS);
    assert.deepEqual(fieldsFor(type, "1.31.2"), FIELDS.slice(1));
    assert.deepEqual(fieldsFor(type, "1.30.0"), ["forwardNotMatchingPreflights"]);
    assert.deepEqual(fieldsFor(type, "1.28.7"), []);
  });
}
