/** What a control plane counts of its API server, under Istio's names. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { TestControlPlane } from "../../support/control-plane.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";

const SLICE = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.2], targetRef: {kind: Pod, name: away, namespace: default}}]
ports: [{name: http, port: 80}]
`;
const service = (port: number) => `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: ${port}}]}
`;
const ROUTE = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web}
spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}
`;

test("changes in the API server are counted by kind", { skip: NO_KUBERNETES, timeout: 600_000 }, async () => {
  await using server = await startApiServer();
  await server.define(customResourceDefinitions());
  await server.kubectl(["create", "namespace", "istio-system"]);
  await using plane = new TestControlPlane({ cluster: await server.api() });
  await plane.ready();
  const address = await plane.address("monitoring service");
  const metrics = async () => (await fetch(`http://${address}/metrics`)).text();
  const counted = (line: string) => eventually(line, async () => (await metrics()).includes(`${line}\n`));
  const event = (name: string, type: string, what: string) =>
    `pilot_k8s_${name}_events{type="${type}",event="${what}"}`;
  await server.apply([service(80), ROUTE, SLICE].join("---"));
  await counted(`${event("cfg", "VirtualService", "add")} 1`);
  await counted("pilot_k8s_endpoints_pending_pod 1");
  await server.apply(service(81));
  await counted(`${event("reg", "Services", "update")} 1`);
  await server.kubectl(["delete", "virtualservice", "web"]);
  await counted(`${event("cfg", "VirtualService", "delete")} 1`);
  await counted('istiod_managed_clusters{cluster_type="local"} 1');
  assert.doesNotMatch(await metrics(), /^controller_sync_errors_total\{/m);
});
