import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf, type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { viewsOf } from "./views.ts";

const service = (name: string, more = "") => `
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec: {clusterIP: 10.96.0.${name.length}, selector: {app: ${name}}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: ${name}-1}
spec: {address: 10.1.0.${name.length}, labels: {app: ${name}, version: v1}, serviceAccount: ${name}${more}}
---`;
const mesh = meshOf(service("web") + service("store"));
const viewsFor = (options: ProxyOptions, snapshot = mesh) => viewsOf(snapshot, proxyOf(options));

test("replicas have one view of everything", () => {
  const [a, b] = [viewsFor({ name: "x-1", ip: "10.5.0.1" }), viewsFor({ name: "x-2", ip: "10.5.0.2" })];
  for (const view of ["outbound", "inbound", "endpoints", "names"] as const) assert.equal(a[view]?.key, b[view]?.key);
});

test("workloads of different services differ inbound, not in endpoints", () => {
  const [web, store] = [viewsFor({ ip: "10.1.0.3" }), viewsFor({ ip: "10.1.0.5" })];
  assert.notEqual(web.inbound?.key, store.inbound?.key);
  assert.equal(web.endpoints.key, store.endpoints.key);
  assert.deepEqual(
    web.inbound?.targets.map(({ targetPort }) => targetPort),
    [8080],
  );
});

test("services of other namespaces are not in front of a workload", () => {
  const other = viewsFor({ ip: "10.1.0.3", namespace: "other" });
  assert.deepEqual(other.inbound?.targets, []);
});

test("clusters may use the same addresses: services and labels are those of the own cluster", () => {
  const selecting = meshOf(
    `${service("web")}
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: e}
spec: {hosts: [e.com], resolution: STATIC, ports: [{number: 81, name: tcp, protocol: TCP}], endpoints: [{address: 10.1.0.3}]}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: web}
spec: {workloadSelector: {labels: {app: web}}, egress: [{hosts: ["./*"]}]}
`,
  );
  const seen = (CLUSTER_ID: string) => {
    const { inbound, outbound } = viewsFor({ ip: "10.1.0.3", metadata: { CLUSTER_ID } }, selecting);
    return [inbound?.targets.map(({ port }) => port.port), outbound.sidecar !== ""];
  };
  assert.deepEqual(seen("Kubernetes"), [[81, 80], true]);
  assert.deepEqual(seen(""), [[81, 80], true]);
  assert.deepEqual(seen("other"), [[81], false]);
});

test("a sidecar has an inbound view, a router one of its gateways", () => {
  assert.equal(viewsFor({}).gateway, undefined);
  assert.equal(viewsFor({ type: "router" }).inbound, undefined);
  assert.deepEqual(viewsFor({ type: "router" }).gateway?.gateways, []);
});

test("a router passes connections on by server name where such a server won its port", () => {
  const gateway = (name: string, created: string, mode: string) => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: ${name}, creationTimestamp: "${created}-01-01T00:00:00Z"}
spec: {servers: [{port: {number: 15443, name: tls, protocol: TLS}, hosts: ["*.com"], tls: {mode: ${mode}}}]}
---`;
  const passes = (yaml: string) => viewsFor({ type: "router" }, meshOf(yaml)).outbound.passesByServerName;
  assert.equal(passes(gateway("a", "2020", "AUTO_PASSTHROUGH") + gateway("b", "2021", "PASSTHROUGH")), true);
  assert.equal(passes(gateway("a", "2021", "AUTO_PASSTHROUGH") + gateway("b", "2020", "PASSTHROUGH")), false);
  assert.equal(passes(gateway("b", "2020", "PASSTHROUGH")), false);
});

test("a router sees the Gateways that select it, and those that select all", () => {
  const gateway = (name: string, selector: string) => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: ${name}}
spec: {${selector}servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
---`;
  const snapshot = meshOf(
    gateway("mine", "selector: {istio: in}, ") + gateway("other", "selector: {istio: out}, ") + gateway("all", ""),
  );
  const views = viewsFor({ type: "router", labels: { istio: "in" } }, snapshot);
  assert.deepEqual(views.gateway?.gateways.map(({ metadata }) => metadata.name).sort(), ["all", "mine"]);
});

test("labels that a registry knows go before those the proxy sends", () => {
  const policy = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict}
spec: {selector: {matchLabels: {version: v1}}, mtls: {mode: STRICT}}
`;
  const snapshot = meshOf(service("web") + policy);
  const mode = (options: ProxyOptions) => viewsFor(options, snapshot).inbound?.mtls.mode;
  assert.equal(mode({ ip: "10.1.0.3", labels: { version: "v9" } }), "STRICT");
  assert.equal(mode({ ip: "10.9.9.9", labels: { version: "v1" } }), "STRICT");
  assert.equal(mode({ ip: "10.9.9.9", labels: { version: "v9" } }), "PERMISSIVE");
});

test("conditions on callers are in the view as outcomes, not as labels", () => {
  const snapshot = meshOf(`${service("web")}
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web}
spec: {hosts: [web], http: [{match: [{sourceLabels: {team: a}}], route: [{destination: {host: web}}]}]}
`);
  const key = (labels: Record<string, string>) => viewsFor({ labels }, snapshot).outbound.key;
  assert.equal(key({ team: "b" }), key({ team: "c", other: "1" }));
  assert.notEqual(key({ team: "a" }), key({ team: "b" }));
});

test("listeners of a headless service that lead to the proxy itself are omitted, whoever it is", () => {
  const snapshot = meshOf(`
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: tcp, port: 5432}]}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: db-1}
spec: {address: 10.1.0.1, labels: {app: db}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: db-2}
spec: {address: 10.1.0.2, labels: {app: db}}
`);
  const [one, two] = [viewsFor({ ip: "10.1.0.1" }, snapshot), viewsFor({ ip: "10.1.0.2" }, snapshot)];
  assert.deepEqual([...one.omittedListeners], ["10.1.0.1_5432"]);
  assert.deepEqual([...two.omittedListeners], ["10.1.0.2_5432"]);
  assert.equal(one.outbound.key, two.outbound.key);
});
