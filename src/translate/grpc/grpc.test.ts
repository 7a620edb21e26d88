import assert from "node:assert/strict";
import { test } from "node:test";
import { type DescMessage, fromBinary, toJson } from "@bufbuild/protobuf";
import { ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { ClusterLoadAssignmentSchema } from "#gen/envoy/config/endpoint/v3/endpoint_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { VirtualHostSchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { HttpConnectionManagerSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { UpstreamTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import { meshOf, type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import type { Recipe } from "../recipes/recipe.ts";
import { viewsOf } from "../views/views.ts";
import { type GrpcView, planGrpcCluster, planGrpcEndpoints, planGrpcListener, planGrpcRoutes } from "./plan.ts";

const SERVICE = `
apiVersion: v1
kind: Service
metadata: {name: greeter, namespace: default}
spec:
  clusterIP: 10.1.2.3
  selector: {app: greeter}
  ports: [{name: grpc, port: 7070, targetPort: 17070}]
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: greeter-1, namespace: default}
spec: {address: 10.0.0.1, labels: {app: greeter}, serviceAccount: greeter}
---
`;
const HOST = "greeter.default.svc.cluster.local";
const CLUSTER = `outbound|7070||${HOST}`;
const SERVER = "xds.istio.io/grpc/lds/inbound/0.0.0.0:17070";

function start(more = "", options: ProxyOptions = {}) {
  const snapshot = meshOf(SERVICE + more);
  const { outbound, inbound, endpoints, isMutualTls } = viewsOf(
    snapshot,
    proxyOf({ labels: { app: "greeter" }, ...options }),
  );
  assert.ok(inbound);
  const view: GrpcView = { outbound, inbound, isMutualTls };
  return { snapshot, view, endpoints };
}
function read<D extends DescMessage>(schema: D, recipe: Recipe | undefined) {
  assert.ok(recipe);
  return fromBinary(schema, recipe.build(recipe.input));
}
const filtersOf = (bytes: Uint8Array | undefined) => {
  assert.ok(bytes);
  return fromBinary(HttpConnectionManagerSchema, bytes).httpFilters.map(({ name }) => name);
};

test("a client's listener leads to the routes of its service, by any of its names", () => {
  const { snapshot, view } = start();
  for (const name of [HOST, "greeter", "greeter.default", "greeter.default.svc"]) {
    const listener = read(ListenerSchema, planGrpcListener(snapshot, view, `${name}:7070`));
    assert.equal(listener.name, `${name}:7070`);
    const { value = new Uint8Array() } = listener.apiListener?.apiListener ?? {};
    const manager = fromBinary(HttpConnectionManagerSchema, value);
    assert.equal(manager.routeSpecifier.case === "rds" && manager.routeSpecifier.value.routeConfigName, CLUSTER);
    assert.deepEqual(filtersOf(value), ["envoy.filters.http.fault", "envoy.filters.http.router"]);
  }
});

test("with both families a client's listener has both allocated addresses of a host", () => {
  const entry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: e}
spec: {hosts: [e.com], resolution: DNS, ports: [{number: 80, name: grpc, protocol: GRPC}]}
`;
  const snapshot = meshOf(entry, { features: { dualStack: true } });
  const proxy = { ...proxyOf({ metadata: { DNS_CAPTURE: "true" } }), addresses: ["10.9.0.1", "fd00::1"] };
  const { outbound, inbound } = viewsOf(snapshot, proxy);
  assert.ok(inbound);
  const view: GrpcView = { outbound, inbound, isMutualTls: false };
  const { additionalAddresses } = read(ListenerSchema, planGrpcListener(snapshot, view, "e.com:80"));
  assert.deepEqual(
    additionalAddresses.map(
      ({ address }) => address?.address.case === "socketAddress" && address.address.value.address,
    ),
    [snapshot.services[0]?.autoAddress6],
  );
});

test("a client's listener keeps calls with one endpoint of services that have a label for it", () => {
  const labelled = SERVICE.replace("name: greeter", 'name: greeter, labels: {istio.io/persistent-session: "c:/p"}');
  const filters = (sessionFilter: boolean) => {
    const snapshot = meshOf(labelled, { features: { sessionFilter } });
    const { outbound, inbound } = viewsOf(snapshot, proxyOf({ labels: { app: "greeter" } }));
    assert.ok(inbound);
    const view: GrpcView = { outbound, inbound, isMutualTls: false };
    const { apiListener } = read(ListenerSchema, planGrpcListener(snapshot, view, "greeter:7070"));
    return filtersOf(apiListener?.apiListener?.value);
  };
  assert.deepEqual(filters(true).slice(0, 1), ["envoy.filters.http.stateful_session"]);
  assert.deepEqual(filters(false).slice(0, 1), ["envoy.filters.http.fault"]);
});

test("names that lead nowhere have no resource", () => {
  const { snapshot, view } = start();
  for (const name of ["", "greeter", ":7070", "greeter:7071", "greeter:x", "other:7070", "[::1", `${SERVER}1`]) {
    assert.equal(planGrpcListener(snapshot, view, name), undefined, name);
  }
  for (const name of ["", "inbound|7070||", `outbound|7071||${HOST}`, `outbound|7070|v1|${HOST}`, "outbound|7070||x"]) {
    assert.equal(planGrpcCluster(snapshot, view, name), undefined, name);
  }
  for (const name of ["", "7070", "outbound|7070||", `outbound|0||${HOST}`])
    assert.equal(planGrpcRoutes(snapshot, view, name), undefined, name);
});

test("routes have domains with and without the port, and time limits where gRPC reads them", () => {
  const { snapshot, view } = start(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: greeter, namespace: default}
spec:
  hosts: [greeter]
  http: [{route: [{destination: {host: greeter}}], timeout: 3s}]
`);
  const recipe = planGrpcRoutes(snapshot, view, CLUSTER);
  assert.equal(read(RouteConfigurationSchema, recipe).name, CLUSTER);
  const host = read(VirtualHostSchema, recipe?.parts?.recipes[0]);
  for (const domain of [HOST, `${HOST}:7070`, "greeter:7070", "10.1.2.3"])
    assert.ok(host.domains.includes(domain), domain);
  const [route] = host.routes;
  assert.ok(route?.action.case === "route");
  assert.equal(route.action.value.maxStreamDuration?.maxStreamDuration?.seconds, 3n);
  assert.equal(route.action.value.maxGrpcTimeout, undefined);
});

test("mirrors keep the host of the request unless the switch for that says no, as those of sidecars do", () => {
  const mirrored = object("VirtualService", "default/greeter", {
    hosts: ["greeter"],
    http: [{ route: [{ destination: { host: "greeter" } }], mirror: { host: "greeter" } }],
  });
  for (const shadowSuffix of [false, true]) {
    const snapshot = meshOf(SERVICE + mirrored, { features: { shadowSuffix } });
    const { view } = start();
    const host = read(VirtualHostSchema, planGrpcRoutes(snapshot, view, CLUSTER)?.parts?.recipes[0]);
    const action = host.routes[0]?.action;
    assert.ok(action?.case === "route");
    assert.equal(action.value.requestMirrorPolicies[0]?.disableShadowHostSuffixAppend, !shadowSuffix);
  }
});

test("clusters take of a traffic policy what gRPC can do, and mutual TLS where it is asked for", () => {
  const { snapshot, view } = start(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: greeter, namespace: default}
spec:
  host: greeter
  trafficPolicy:
    tls: {mode: ISTIO_MUTUAL}
    connectionPool: {http: {http2MaxRequests: 7}}
  subsets:
  - name: v1
    labels: {version: v1}
    trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}, tls: {mode: DISABLE}}
`);
  const whole = read(ClusterSchema, planGrpcCluster(snapshot, view, CLUSTER));
  assert.equal(whole.edsClusterConfig?.serviceName, CLUSTER);
  assert.equal(whole.lbPolicy, 0);
  assert.equal(whole.circuitBreakers?.thresholds[0]?.maxRequests, 7);
  const socket = whole.transportSocket?.configType;
  assert.ok(socket?.case === "typedConfig");
  const tls = JSON.stringify(
    toJson(UpstreamTlsContextSchema, fromBinary(UpstreamTlsContextSchema, socket.value.value)),
  );
  assert.match(tls, /"exact":"spiffe:\/\/cluster.local\/ns\/default\/sa\/greeter"/);
  assert.match(tls, /"caCertificateProviderInstance":\{"instanceName":"default","certificateName":"ROOTCA"\}/);
  const subset = read(ClusterSchema, planGrpcCluster(snapshot, view, `outbound|7070|v1|${HOST}`));
  assert.equal(subset.lbPolicy, 1);
  assert.equal(subset.transportSocket, undefined);
});

test("a server is called in plain text, or with mutual TLS where that is strict", () => {
  const strict = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: default}
spec: {mtls: {mode: STRICT}}
`;
  const chainOf = ({ snapshot, view }: ReturnType<typeof start>) =>
    read(ListenerSchema, planGrpcListener(snapshot, view, SERVER)).filterChains.map(
      ({ name, transportSocket }) => `${name} ${transportSocket !== undefined}`,
    );
  assert.deepEqual(chainOf(start()), ["inbound-plaintext false"]);
  assert.deepEqual(chainOf(start(strict)), ["inbound-mtls true"]);
});

test("a server is called with mutual TLS where callers are told so, by what its workload is registered with", () => {
  const registered = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: registered, namespace: default}
spec:
  hosts: [registered.example]
  resolution: STATIC
  ports: [{number: 17070, name: grpc, protocol: GRPC}]
  endpoints: [{address: 10.0.0.9, labels: {security.istio.io/tlsMode: istio}}]
`;
  const labels = { app: "greeter", "security.istio.io/tlsMode": "istio" };
  const chainsOf = (options: ProxyOptions) => {
    const { snapshot, view } = start(registered, options);
    return read(ListenerSchema, planGrpcListener(snapshot, view, SERVER)).filterChains.map(({ name }) => name);
  };
  assert.deepEqual(chainsOf({ ip: "10.0.0.9" }), ["inbound-mtls"]);
  assert.deepEqual(chainsOf({ ip: "10.0.0.1", labels }), ["inbound-plaintext"]);
});

test("a client is told that hosts which only an Envoy can find have no endpoints", () => {
  const { snapshot, endpoints } = start(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: by-name, namespace: default}
spec:
  hosts: [by-name.example]
  resolution: DNS
  ports: [{number: 443, name: grpc, protocol: GRPC}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: by-address, namespace: default}
spec:
  hosts: [by-address.example]
  resolution: NONE
  ports: [{number: 443, name: grpc, protocol: GRPC}]
`);
  for (const host of ["by-name.example", "by-address.example"]) {
    const name = `outbound|443||${host}`;
    const assignment = read(ClusterLoadAssignmentSchema, planGrpcEndpoints(snapshot, endpoints, name));
    assert.deepEqual([assignment.clusterName, assignment.endpoints], [name, []]);
  }
  assert.equal(read(ClusterLoadAssignmentSchema, planGrpcEndpoints(snapshot, endpoints, CLUSTER)).endpoints.length, 1);
  assert.equal(planGrpcEndpoints(snapshot, endpoints, "outbound|443||nowhere.example"), undefined);
});

test("a service that is called at the address it has is found by the workloads that it selects", () => {
  const { snapshot, endpoints } = start(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: selecting, namespace: default}
spec:
  hosts: [selecting.example]
  ports: [{number: 443, name: grpc, protocol: GRPC}]
  resolution: NONE
  workloadSelector: {labels: {app: greeter}}
---`);
  const planned = planGrpcEndpoints(snapshot, endpoints, "outbound|443||selecting.example");
  const [group] = read(ClusterLoadAssignmentSchema, planned).endpoints;
  assert.equal(group?.lbEndpoints.length, 1);
});

test("a server has what is denied and what is allowed as filters of their own names, and no other policies", () => {
  const policy = (name: string, action: string) => `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: ${name}, namespace: default}
spec: {action: ${action}, rules: [{to: [{operation: {paths: ["/a"]}}]}]}
---`;
  const { snapshot, view } = start(policy("a", "ALLOW") + policy("b", "DENY") + policy("c", "AUDIT"));
  const [chain] = read(ListenerSchema, planGrpcListener(snapshot, view, SERVER)).filterChains;
  const config = chain?.filters[0]?.configType;
  assert.ok(config?.case === "typedConfig");
  assert.deepEqual(filtersOf(config.value.value), [
    "envoy.filters.http.rbac.DENY",
    "envoy.filters.http.rbac",
    "envoy.filters.http.router",
  ]);
});

test("a policy that allows nothing lets nobody call a server", () => {
  const { snapshot, view } = start(`
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: nothing, namespace: default}
spec: {}
`);
  const [chain] = read(ListenerSchema, planGrpcListener(snapshot, view, SERVER)).filterChains;
  const config = chain?.filters[0]?.configType;
  assert.ok(config?.case === "typedConfig");
  assert.deepEqual(filtersOf(config.value.value), ["envoy.filters.http.rbac", "envoy.filters.http.router"]);
});
