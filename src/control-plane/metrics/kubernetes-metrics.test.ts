import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics } from "#lib/metrics/metrics.ts";
import type { FollowedType } from "#sources/kubernetes/followed-types.ts";
import { objectsOf } from "../../../test/support/mesh.ts";
import { addKubernetesGauges, countedEvents, endpointsWithoutPod, KUBERNETES_METRICS } from "./kubernetes-metrics.ts";

const SLICE = `
apiVersion: v1
kind: Pod
metadata: {name: here, namespace: default}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: default, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints:
- {addresses: [10.0.0.1], targetRef: {kind: Pod, name: here, namespace: default}}
- {addresses: [10.0.0.2], targetRef: {kind: Pod, name: away, namespace: default}}
- {addresses: [10.0.0.3]}
ports: [{name: http, port: 80}]
`;

const type = (kind: string, isCustom: boolean): FollowedType => {
  return { group: "", version: "v1", kind, plural: "", namespaced: true, isCustom };
};

test("changes are counted as those of the registry or of the configuration, under Istio's names", async () => {
  const metrics = new Metrics(KUBERNETES_METRICS);
  const events = countedEvents(metrics, "Kubernetes");
  events.happened(type("Service", false), "add");
  events.happened(type("VirtualService", true), "delete", 3);
  events.happened(type("Secret", false), "update");
  events.failed("");
  events.failed("east");
  events.secret("add");
  const { text } = await metrics.read();
  for (const line of [
    'pilot_k8s_reg_events{type="Services",event="add"} 1',
    'pilot_k8s_cfg_events{type="VirtualService",event="delete"} 3',
    'controller_sync_errors_total{cluster="Kubernetes"} 1',
    'controller_sync_errors_total{cluster="east"} 1',
    'remote_cluster_secret_events_total{event="add"} 1',
  ]) {
    assert.ok(text.includes(`${line}\n`), line);
  }
  assert.ok(!text.includes('type="Secret'), "Secrets are neither");
});

test("clusters and endpoints without a pod are counted when somebody asks", async () => {
  const metrics = new Metrics(KUBERNETES_METRICS);
  const objects = objectsOf(SLICE);
  const remotes = [{ id: "east", secret: "istio-system/east", status: "timeout" }] as const;
  addKubernetesGauges(metrics, { objects: () => objects }, () => remotes);
  const { text } = await metrics.read();
  assert.match(text, /^istiod_managed_clusters\{cluster_type="local"\} 1$/m);
  assert.match(text, /^istiod_managed_clusters\{cluster_type="remote"\} 1$/m);
  const status = (name: string) => `{cluster="east",cluster_type="remote",status="${name}"}`;
  assert.ok(text.includes(`istiod_remote_cluster_sync_status${status("timeout")} 1`));
  assert.ok(text.includes(`istiod_remote_cluster_sync_status${status("synced")} 0`));
  assert.match(text, /^pilot_k8s_endpoints_pending_pod 1$/m);
  assert.equal(endpointsWithoutPod([]), 0);
});
