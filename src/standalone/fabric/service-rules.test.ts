import assert from "node:assert/strict";
import test from "node:test";
import { meshOf } from "../../../test/support/mesh.ts";
import { hostTable, lookUp } from "./names.ts";
import { serviceRules } from "./service-rules.ts";

const SERVICE = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.7, selector: {app: web}, ports: [{name: http, port: 8000, targetPort: 80}, {name: dns, port: 53, protocol: UDP}]}
`;

function entry(name: string, address: string): string {
  return `---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: ${name}, namespace: shop, labels: {app: web}}
spec: {address: ${address}, labels: {app: web}}
`;
}

test("serviceRules() spreads a service over its endpoints in equal shares", () => {
  const rules = serviceRules(
    meshOf(SERVICE + entry("a", "10.244.0.11") + entry("b", "10.244.0.12") + entry("c", "10.244.0.13")),
  );
  const match = "-A MIZZEN-SERVICES -d 10.96.0.7/32 -p tcp -m tcp --dport 8000";
  const chosen = rules.split("\n").filter((line) => line.startsWith(match));
  assert.deepEqual(chosen, [
    `${match} -m statistic --mode random --probability 0.3333333333 -j DNAT --to-destination 10.244.0.11:80`,
    `${match} -m statistic --mode random --probability 0.5000000000 -j DNAT --to-destination 10.244.0.12:80`,
    `${match} -j DNAT --to-destination 10.244.0.13:80`,
  ]);
  assert.match(rules, /-d 10\.96\.0\.7\/32 -p udp -m udp --dport 53 .*--to-destination 10\.244\.0\.11:53/);
  assert.match(rules, /-A MIZZEN-HAIRPIN -s 10\.244\.0\.11\/32 -d 10\.244\.0\.11\/32 -j MASQUERADE/);
});

test("serviceRules() refuses calls to a service without endpoints instead of letting them wait", () => {
  const rules = serviceRules(meshOf(SERVICE));
  assert.match(rules, /-A MIZZEN-NO-ENDPOINTS -d 10\.96\.0\.7\/32 -p tcp -m tcp --dport 8000 -j REJECT/);
  assert.ok(!rules.includes("DNAT"));
});

function serviceEntry(resolution: "DNS" | "STATIC"): string {
  return `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: far, namespace: shop}
spec: {hosts: [far.example], addresses: [240.0.0.9], ports: [{number: 80, name: http, protocol: HTTP}], resolution: ${resolution}}
`;
}

test("serviceRules() leaves headless services and service entries alone", () => {
  const headless = SERVICE.replace("10.96.0.7", "None") + entry("a", "10.244.0.11");
  const rules = serviceRules(meshOf(headless + serviceEntry("DNS"))) + serviceRules(meshOf(serviceEntry("STATIC")));
  assert.ok(!rules.includes("-A "), rules);
});

test("hostTable() has service addresses, the endpoints of headless services, and the control plane", () => {
  const table = hostTable({ snapshot: meshOf(SERVICE) });
  assert.deepEqual(lookUp(table, "Web.shop.svc.cluster.local.").values, ["10.96.0.7"]);
  assert.deepEqual(lookUp(table, "istiod.istio-system.svc.cluster.local").values, ["10.244.0.2"]);
  assert.equal(lookUp(table, "web.shop").values, undefined);
  const headless = hostTable({
    snapshot: meshOf(SERVICE.replace("10.96.0.7", "None") + entry("a", "10.244.0.11") + entry("b", "10.244.0.12")),
  });
  assert.deepEqual(lookUp(headless, "web.shop.svc.cluster.local").values, ["10.244.0.11", "10.244.0.12"]);
});

test("hostTable() leaves hosts of service entries to the sidecars, so that proxies resolve them as they are", () => {
  const withAddress = serviceEntry("DNS");
  const allocated = withAddress.replace("addresses: [240.0.0.9], ", "");
  for (const text of [withAddress, allocated])
    assert.equal(lookUp(hostTable({ snapshot: meshOf(text) }), "far.example").values, undefined);
});
