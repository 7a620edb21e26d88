import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { objectsOf } from "../../test/support/mesh.ts";
import { gatewayAddresses } from "./ingress-status.ts";

const service = (spec: object, status: object = {}) =>
  objectsOf(
    JSON.stringify({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "istio-ingressgateway", namespace: "istio-system" },
      spec: { ports: [{ port: 80 }], ...spec },
      status,
    }),
  );
const addresses = (objects: ReturnType<typeof service>, mesh: object = {}) =>
  gatewayAddresses(objects, { ...DEFAULT_MESH_CONFIG, ...mesh }, "istio-system");

test("the gateway's service has addresses by its load balancer, by hand, or a name", () => {
  const loadBalancer = { ingress: [{ hostname: "lb.example.com" }, { ip: "2.2.2.2" }] };
  assert.deepEqual(addresses(service({ type: "LoadBalancer", externalIPs: ["1.1.1.1"] }, { loadBalancer })), [
    { ip: "1.1.1.1" },
    { ip: "2.2.2.2" },
    { hostname: "lb.example.com" },
  ]);
  const named = service({ type: "ExternalName", externalName: "outside.example.com" });
  assert.deepEqual(addresses(named), [{ hostname: "outside.example.com" }]);
  assert.deepEqual(addresses(service({ type: "ClusterIP" })), []);
  assert.deepEqual(addresses([]), []);
});

test("without a service the nodes of gateways are where the mesh is reached", () => {
  const node = (name: string, address: string) =>
    `apiVersion: v1\nkind: Node\nmetadata: {name: ${name}}\nstatus: {addresses: [{type: ExternalIP, address: ${address}}, {type: InternalIP, address: 10.0.0.1}]}\n---\n`;
  const gateway = (name: string, nodeName: string, phase: string) =>
    `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}, namespace: istio-system, labels: {istio: ingressgateway}}\nspec: {nodeName: ${nodeName}}\nstatus: {phase: ${phase}}\n---\n`;
  const objects = objectsOf(
    node("one", "3.3.3.3") + node("two", "4.4.4.4") + gateway("a", "one", "Pending") + gateway("b", "two", "Running"),
  );
  assert.deepEqual(addresses(objects, { ingressService: "" }), [{ ip: "4.4.4.4" }]);
  assert.deepEqual(addresses(objects, { ingressService: "", ingressSelector: "other" }), []);
});
