import assert from "node:assert/strict";
import test from "node:test";
import { objectsOf } from "../../../test/support/mesh.ts";
import type { Member } from "../mesh/mesh.ts";
import { workloadEntry } from "./workload-entry.ts";

const WEB: Member = {
  name: "web-1",
  workload: "web",
  namespace: "shop",
  serviceAccount: "web-sa",
  labels: { app: "web", version: "v1" },
  annotations: {},
  ports: [
    { name: "http", port: 8080, protocol: "TCP" },
    { name: "", port: 9090, protocol: "TCP" },
  ],
  publish: [],
  proxy: "sidecar",
  after: [],
  readiness: undefined,
  app: undefined,
};

test("workloadEntry() is an object that the control plane accepts, with the member's identity", () => {
  const [object] = objectsOf(workloadEntry(WEB, "10.244.0.11"));
  assert.equal(object?.kind, "WorkloadEntry");
  assert.deepEqual(
    { name: object?.metadata.name, namespace: object?.metadata.namespace, spec: object?.spec },
    {
      name: "web-1",
      namespace: "shop",
      spec: {
        address: "10.244.0.11",
        ports: { http: 8080 },
        labels: {
          app: "web",
          version: "v1",
          "service.istio.io/workload-name": "web",
          "security.istio.io/tlsMode": "istio",
        },
        serviceAccount: "web-sa",
      },
    },
  );
});

test("workloadEntry() turns mutual TLS off for a member without a sidecar, a gateway, or one that says so", () => {
  const off = { ...WEB.labels, "security.istio.io/tlsMode": "disabled" };
  for (const member of [
    { ...WEB, proxy: "none" },
    { ...WEB, proxy: "router" },
    { ...WEB, labels: off },
  ] as const) {
    const [object] = objectsOf(workloadEntry({ ...member, ports: [] }, "10.244.0.11"));
    assert.equal(object?.metadata.labels["security.istio.io/tlsMode"], "disabled");
  }
});
