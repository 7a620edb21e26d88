import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf } from "../../../test/support/mesh.ts";
import { MESH_FIGURES } from "./mesh-gauges.ts";

const entry = (name: string, resolution: string, more = "") => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: default}
spec:
  hosts: [${name}.example.com]
  resolution: ${resolution}
  ports: [{number: 80, name: http, protocol: HTTP}]
  ${more}
---`;
const object = (kind: string, name: string, spec: string) => `
apiVersion: networking.istio.io/v1
kind: ${kind}
metadata: {name: ${name}, namespace: default}
spec: ${spec}
---`;

const tcp = (name: string, port: number) =>
  object(
    "ServiceEntry",
    name,
    `{hosts: [${name}.example.com], addresses: [10.9.0.1], resolution: STATIC, ports: [{number: ${port}, name: tcp, protocol: TCP}], endpoints: [{address: 10.0.0.1}]}`,
  );

test("the figures of a mesh", () => {
  const snapshot = meshOf(
    entry("full", "STATIC", "endpoints: [{address: 10.0.0.1}]") +
      entry("empty", "STATIC", "workloadSelector: {labels: {app: none}}") +
      tcp("database", 3306) +
      object("VirtualService", "one", "{hosts: [a, b], http: [{route: [{destination: {host: a}}]}]}") +
      object("VirtualService", "two", "{hosts: [b], http: [{route: [{destination: {host: a}}]}]}"),
  );
  const figures = Object.fromEntries(Object.entries(MESH_FIGURES).map(([name, figure]) => [name, figure(snapshot)]));
  assert.deepEqual(figures, {
    pilot_services: 3,
    pilot_virt_services: 2,
    pilot_eds_no_instances: 1,
    pilot_dns_cluster_without_endpoints: 0,
    pilot_endpoint_not_ready: 0,
    endpoint_no_pod: 0,
  });
});
