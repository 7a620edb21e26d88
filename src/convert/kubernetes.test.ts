import assert from "node:assert/strict";
import { test } from "node:test";
import { type Endpoint, isOffered, takesRequests } from "#model/service/endpoint.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { type MeshOptions, meshOf } from "../../test/support/mesh.ts";

const WEB = "default/web.default.svc.cluster.local";

interface Metadata {
  readonly name?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [more: string]: unknown;
}

function meshWith(documents: readonly object[], options?: MeshOptions): Snapshot {
  return meshOf(documents.map((document) => JSON.stringify(document)).join("\n---\n"), options);
}

function service(spec: object = {}, metadata: Metadata = {}, status?: object): object {
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", ...metadata },
    spec: { clusterIP: "10.96.0.9", ports, selector: { app: "web" }, ...spec },
    ...(status && { status }),
  };
}

function pod(name: string, ip: string, more: { metadata?: Metadata; spec?: object; status?: object } = {}): object {
  const { labels, ...metadata } = more.metadata ?? {};
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { app: "web", ...labels }, ...metadata },
    spec: { serviceAccountName: "web", containers: [{ name: "app", image: "x" }], ...more.spec },
    status: { phase: "Running", podIP: ip, conditions: [{ type: "Ready", status: "True" }], ...more.status },
  };
}

function slice(endpoints: readonly object[], more: { metadata?: Metadata; content?: object } = {}): object {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "web-1", labels: { "kubernetes.io/service-name": "web" }, ...more.metadata },
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    endpoints,
    ...more.content,
  };
}

function ofPod(name: string, ip: string, more: object = {}): object {
  return { addresses: [ip], targetRef: { kind: "Pod", name, namespace: "default" }, ...more };
}

function endpoints(mesh: Snapshot, key: `${string}/${string}` = WEB): readonly Endpoint[] {
  return mesh.endpoints.get(key)?.endpoints ?? [];
}

function endpointOf(...documents: object[]): Endpoint {
  const [found] = endpoints(meshWith([service(), slice([ofPod("web-1", "10.1.0.1")]), ...documents]));
  assert.ok(found);
  return found;
}

function serviceOf(...documents: object[]): Service {
  const [found] = meshWith(documents).services;
  assert.ok(found);
  return found;
}

test("endpoints of a Service are those of its slices, and what is known of them comes from their pods", () => {
  const node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: "n1",
      labels: {
        "topology.kubernetes.io/region": "eu",
        "failure-domain.beta.kubernetes.io/zone": "west",
        "topology.istio.io/subzone": "rack",
      },
    },
  };
  const labels = { "security.istio.io/tlsMode": "istio", version: "v1" };
  const found = endpointOf(pod("web-1", "10.1.0.1", { metadata: { labels }, spec: { nodeName: "n1" } }), node);
  assert.deepEqual(found, {
    address: "10.1.0.1",
    ports: { http: 8080 },
    labels: {
      app: "web",
      ...labels,
      "topology.kubernetes.io/region": "eu",
      "topology.kubernetes.io/zone": "west",
      "topology.istio.io/subzone": "rack",
      "topology.istio.io/cluster": "Kubernetes",
      "kubernetes.io/hostname": "n1",
    },
    namespace: "default",
    workloadName: "web-1",
    serviceAccount: "web",
    tlsMode: "istio",
    network: "",
    locality: "eu/west/rack",
    clusterId: "Kubernetes",
    weight: 0,
    health: "healthy",
    nodeName: "n1",
  });
});

test("labels of a pod say where it is, before its node does", () => {
  const node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n1", labels: { "topology.kubernetes.io/zone": "z" } },
  };
  const at = (labels: Metadata["labels"] = {}) =>
    endpointOf(pod("web-1", "10.1.0.1", { metadata: { labels }, spec: { nodeName: "n1" } }), node);
  assert.equal(at({ "istio-locality": "a.b.c" }).locality, "a/b/c");
  assert.equal(at({ "istio-locality": "a.b.c", "topology.istio.io/locality": "d.e" }).locality, "d/e");
  assert.equal(at().locality, "/z/");
  assert.equal(at({ "topology.istio.io/network": "n2" }).network, "n2");
});

test("the namespace of the control plane says in which network its cluster is", () => {
  const labels = { "topology.istio.io/network": "n1" };
  const system = { apiVersion: "v1", kind: "Namespace", metadata: { name: "istio-system", labels } };
  assert.equal(endpointOf(pod("web-1", "10.1.0.1"), system).network, "n1");
  const own = { labels: { "topology.istio.io/network": "n2" } };
  assert.equal(endpointOf(pod("web-1", "10.1.0.1", { metadata: own }), system).network, "n2");
});

test("a slice may name a pod of another namespace", () => {
  const targetRef = { kind: "Pod", name: "web-1", namespace: "other" };
  const listed = slice([{ addresses: ["10.1.0.1"], targetRef }, ofPod("web-1", "10.1.0.2")]);
  const there = pod("web-1", "10.1.0.1", { metadata: { namespace: "other" } });
  const found = endpoints(meshWith([service(), listed, there, pod("web-1", "10.1.0.2")]));
  assert.deepEqual(
    found.map(({ address, namespace }) => [address, namespace]),
    [
      ["10.1.0.1", "other"],
      ["10.1.0.2", "default"],
    ],
  );
});

test("the workload of a pod is named after what made the pod", () => {
  const owned = (kind: string, name: string, labels: Metadata["labels"] = {}) => {
    const ownerReferences = [
      { kind: "Other", name: "x" },
      { apiVersion: "v1", kind, name, controller: true, uid: "u" },
    ];
    const metadata = { generateName: "g-", ownerReferences, labels };
    return endpointOf(pod("web-1", "10.1.0.1", { metadata })).workloadName;
  };
  assert.equal(owned("ReplicaSet", "web-v1-5d4f", { "pod-template-hash": "5d4f" }), "web-v1");
  assert.equal(owned("ReplicaSet", "web-v1-5d4f", { "rollouts-pod-template-hash": "5d4f" }), "web-v1");
  assert.equal(owned("ReplicaSet", "web-v1", { "pod-template-hash": "5d4f" }), "web-v1");
  assert.equal(owned("ReplicationController", "web-3", { deploymentconfig: "web" }), "web");
  assert.equal(owned("ReplicationController", "web-3"), "web-3");
  assert.equal(owned("Job", "sync-28012345"), "sync");
  assert.equal(owned("Job", "sync-1"), "sync-1");
  assert.equal(owned("StatefulSet", "db"), "db");
  assert.equal(owned("StatefulSet", "db", { "service.istio.io/workload-name": "own" }), "own");
  const ownerReferences = [{ kind: "StatefulSet", name: "db", controller: true }];
  assert.equal(endpointOf(pod("web-1", "10.1.0.1", { metadata: { ownerReferences } })).workloadName, "web-1");
});

test("conditions of a slice say how an endpoint is", () => {
  const health = (conditions: object, labels: Metadata["labels"] = {}) => {
    const found = [
      service({}, { labels }),
      slice([ofPod("web-1", "10.1.0.1", { conditions })]),
      pod("web-1", "10.1.0.1"),
    ];
    return endpoints(meshWith(found))[0]?.health;
  };
  const sessions = { "istio.io/persistent-session": "cookie" };
  assert.equal(health({}), "healthy");
  assert.equal(health({ ready: true, terminating: true }), "healthy");
  assert.equal(health({ ready: false, serving: false, terminating: false }), "unhealthy");
  assert.equal(health({ ready: false, serving: true, terminating: true }), "terminating");
  assert.equal(health({ ready: false, serving: true, terminating: true }, sessions), "draining");
  assert.equal(health({ ready: false, serving: false, terminating: true }, sessions), "terminating");
  assert.equal(health({ ready: false }), "terminating");
});

test("an endpoint without a pod is nobody's, one whose pod is not known yet is left out", () => {
  const alone = { addresses: ["10.1.0.7"] };
  const mesh = meshWith([
    service(),
    slice([alone, ofPod("unknown", "10.1.0.8"), { addresses: ["10.1.0.1"] }]),
    pod("web-1", "10.1.0.1"),
  ]);
  assert.deepEqual(
    endpoints(mesh).map(({ address, workloadName, namespace, serviceAccount, tlsMode }) => [
      address,
      workloadName,
      namespace,
      serviceAccount,
      tlsMode,
    ]),
    [
      ["10.1.0.7", "", "", "", "disabled"],
      ["10.1.0.1", "web-1", "default", "web", "disabled"],
    ],
  );
  assert.deepEqual(mesh.endpoints.get(WEB)?.identities, ["spiffe://cluster.local/ns/default/sa/web"]);
});

test("an address that is in two slices counts once for each port", () => {
  const second = slice([{ addresses: ["10.1.0.1"] }, { addresses: ["10.1.0.2"] }], {
    metadata: { name: "web-2" },
    content: {
      ports: [
        { name: "http", port: 9090 },
        { name: "admin", port: 9091 },
      ],
    },
  });
  const mesh = meshWith([service(), slice([{ addresses: ["10.1.0.1"] }]), second]);
  assert.deepEqual(
    endpoints(mesh).map(({ address, ports }) => [address, ports]),
    [
      ["10.1.0.1", { http: 8080 }],
      ["10.1.0.1", { admin: 9091 }],
      ["10.1.0.2", { http: 9090, admin: 9091 }],
    ],
  );
});

test("slices of names, of nothing, and of other clusters are no endpoints", () => {
  const odd = [
    slice([{ addresses: ["a.example.com"] }], { metadata: { name: "a" }, content: { addressType: "FQDN" } }),
    slice([{ addresses: ["10.1.0.1"] }], { metadata: { name: "b", labels: {} } }),
    slice([{ addresses: ["10.1.0.1"] }], {
      metadata: {
        name: "c",
        labels: { "kubernetes.io/service-name": "web", "multicluster.kubernetes.io/service-name": "web" },
      },
    }),
  ];
  assert.deepEqual(endpoints(meshWith([service(), ...odd])), []);
});

test("without slices a Service has the ready pods that it selects, by number or name of a port", () => {
  const ports = [
    { name: "http", port: 80, targetPort: "web" },
    { name: "plain", port: 81 },
  ];
  const containers = [
    {
      name: "app",
      ports: [
        { name: "web", containerPort: 8080 },
        { name: "web", containerPort: 1 },
      ],
    },
    { name: "dns", ports: [{ name: "plain", containerPort: 53, protocol: "UDP" }] },
  ];
  const gone = { conditions: [{ type: "Ready", status: "True" }] };
  const mesh = meshWith([
    service({ ports }),
    pod("web-1", "10.1.0.1", { spec: { containers } }),
    pod("starting", "10.1.0.2", { status: { conditions: [] } }),
    pod("done", "10.1.0.3", { status: { phase: "Succeeded" } }),
    pod("leaving", "10.1.0.4", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }),
    pod("nowhere", "", { status: { ...gone, podIP: "" } }),
    pod("other", "10.1.0.5", { metadata: { labels: { app: "other" } } }),
  ]);
  assert.deepEqual(
    endpoints(mesh).map(({ address, ports }) => [address, ports]),
    [["10.1.0.1", { http: 8080, plain: 81 }]],
  );
});

test("a Service has the entries that it selects beside its slices", () => {
  const entry = {
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadEntry",
    metadata: { name: "vm" },
    spec: { address: "10.2.0.1", labels: { app: "web" } },
  };
  const mesh = meshWith([service(), slice([ofPod("web-1", "10.1.0.1")]), pod("web-1", "10.1.0.1"), entry]);
  assert.deepEqual(
    endpoints(mesh).map(({ address, health }) => `${address} ${health}`),
    ["10.1.0.1 healthy", "10.2.0.1 unknown"],
  );
});

test("a headless Service of an API server has pods alone", () => {
  const entry = {
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadEntry",
    metadata: { name: "vm" },
    spec: { address: "10.2.0.1", labels: { app: "web" } },
  };
  const objects = [
    service({ clusterIP: "None" }),
    slice([ofPod("web-1", "10.1.0.1")]),
    pod("web-1", "10.1.0.1"),
    entry,
  ];
  const addresses = (byApiServer: boolean) =>
    endpoints(meshWith(objects, { byApiServer })).map(({ address }) => address);
  assert.deepEqual(addresses(true), ["10.1.0.1"]);
  assert.deepEqual(addresses(false), ["10.1.0.1", "10.2.0.1"]);
});

test("an entry whose health is checked takes part when it is healthy", () => {
  const entry = (status?: object) => ({
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadEntry",
    metadata: { name: "vm", annotations: { "proxy.istio.io/health-checks-enabled": "true" } },
    spec: { address: "10.2.0.1", labels: { app: "web" } },
    status,
  });
  const count = (status?: object) => endpoints(meshWith([service(), entry(status)])).length;
  assert.equal(count(), 0);
  assert.equal(count({ conditions: [{ type: "Healthy", status: "False" }] }), 0);
  assert.equal(count({ conditions: [{ type: "Other", status: "True" }] }), 0);
  assert.equal(count({ conditions: [{ type: "Healthy", status: "True", message: "ok" }] }), 1);
});

test("who is selected by whom can be turned off, and what health checks say", () => {
  const entry = {
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadEntry",
    metadata: { name: "vm", annotations: { "proxy.istio.io/health-checks-enabled": "true" } },
    spec: { address: "10.2.0.1", labels: { app: "web" } },
  };
  const serviceEntry = {
    apiVersion: "networking.istio.io/v1",
    kind: "ServiceEntry",
    metadata: { name: "web", namespace: "default" },
    spec: {
      hosts: ["web.example"],
      ports: [{ number: 80, name: "http", protocol: "HTTP" }],
      resolution: "STATIC",
      workloadSelector: { labels: { app: "web" } },
    },
  };
  const documents = [service(), slice([ofPod("web-1", "10.1.0.1")]), pod("web-1", "10.1.0.1"), entry, serviceEntry];
  const found = (features: MeshOptions["features"], key: `${string}/${string}` = WEB) =>
    endpoints(meshWith(documents, { features: { ...features }, byApiServer: true }), key).map(({ address }) => address);
  assert.deepEqual(found({}), ["10.1.0.1"]);
  assert.deepEqual(found({ entryHealth: false }), ["10.1.0.1", "10.2.0.1"]);
  assert.deepEqual(found({ entryHealth: false, servicesSelectEntries: false }), ["10.1.0.1"]);
  assert.deepEqual(found({}, "default/web.example"), ["10.1.0.1"]);
  assert.deepEqual(found({ entriesSelectPods: false }, "default/web.example"), []);
});

test("workloads with the label of such finish what they have begun", () => {
  const draining = pod("web-1", "10.1.0.1", { metadata: { labels: { "istio.io/draining": "true" } } });
  const documents = [service(), slice([ofPod("web-1", "10.1.0.1")]), draining];
  const found = (features?: MeshOptions["features"]) =>
    endpoints(meshWith(documents, features && { features })).map(({ health, drains }) => [health, drains]);
  assert.deepEqual(found(), [["healthy", true]]);
  assert.deepEqual(found({ drainingLabel: "other" }), [["healthy", undefined]]);
  const [endpoint] = endpoints(meshWith(documents));
  assert.ok(endpoint);
  const [sessions, near] = [
    { session: { by: "cookie", name: "c", path: "/" } },
    { trafficDistribution: "same-zone" },
  ] as const;
  const sick = { ...endpoint, health: "unhealthy" } as const;
  assert.deepEqual([isOffered(endpoint, {}), isOffered(endpoint, sessions)], [false, true]);
  assert.deepEqual([isOffered(sick, sessions), isOffered(sick, near)], [false, false]);
  assert.ok(isOffered(sick, { ...sessions, ...near }));
  assert.ok(takesRequests(endpoint), "its name is answered on");
});

test("a label of a service tells how sessions stay with one endpoint", () => {
  const session = (labels: Record<string, string>, features?: MeshOptions["features"]) =>
    meshWith([service({}, { labels })], features && { features }).services[0]?.session;
  const cookie = { "istio.io/persistent-session": "id" };
  const header = { "istio.io/persistent-session-header": "x-id" };
  assert.deepEqual(session(cookie), { by: "cookie", name: "id", path: "/" });
  assert.deepEqual(session({ "istio.io/persistent-session": "id:/a:b" }), { by: "cookie", name: "id", path: "/a:b" });
  assert.deepEqual(session(header), { by: "header", name: "x-id", path: "" });
  assert.deepEqual(session({ ...cookie, ...header })?.by, "cookie");
  assert.equal(session({ "istio.io/persistent-session": "" }), undefined);
  assert.deepEqual(session({ sticky: "id" }, { sessionCookieLabel: "sticky" })?.name, "id");
});

test("pods of both families are one endpoint where both are used", () => {
  const both = { podIP: "10.1.0.1", podIPs: [{ ip: "10.1.0.1" }, { ip: "fd00::1" }] };
  const documents = [
    service({ clusterIPs: ["10.96.0.9", "fd00:1::9"] }),
    slice([ofPod("web-1", "10.1.0.1")]),
    slice([ofPod("web-1", "fd00::1")], { metadata: { name: "web-6" }, content: { addressType: "IPv6" } }),
    pod("web-1", "10.1.0.1", { status: both }),
  ];
  const shown = (options?: MeshOptions) =>
    endpoints(meshWith(documents, options)).map(({ address, addresses }) => [address, addresses]);
  assert.deepEqual(shown(), [
    ["10.1.0.1", undefined],
    ["fd00::1", undefined],
  ]);
  assert.deepEqual(shown({ features: { dualStack: true } }), [["10.1.0.1", ["10.1.0.1", "fd00::1"]]]);
});

test("a pod with a subdomain has a name of its own", () => {
  const named = (spec: object) => endpointOf(pod("web-1", "10.1.0.1", { spec })).podName;
  assert.equal(named({ hostname: "a" }), undefined);
  assert.deepEqual(named({ subdomain: "web" }), { hostname: "web-1", subdomain: "web" });
  assert.deepEqual(named({ hostname: "a", subdomain: "web" }), { hostname: "a", subdomain: "web" });
});

test("a Service says how it is reached and by whom", () => {
  const annotation = "networking.istio.io/traffic-distribution";
  assert.equal(serviceOf(service({ trafficDistribution: "PreferClose" })).trafficDistribution, "same-zone");
  assert.equal(serviceOf(service({ trafficDistribution: "PreferSameNode" })).trafficDistribution, "same-node");
  const annotated = (value: string) =>
    serviceOf(service({}, { annotations: { [annotation]: value } })).trafficDistribution;
  assert.equal(annotated("prefersamezone"), "same-zone");
  assert.equal(annotated("elsewhere"), undefined);
  assert.equal(serviceOf(service({ internalTrafficPolicy: "Local" })).nodeLocal, true);
  assert.equal(serviceOf(service({ publishNotReadyAddresses: true })).publishNotReady, true);
  const status = { loadBalancer: { ingress: [{ ip: "1.2.3.4" }, { hostname: "lb.example.com" }, {}] } };
  const balanced = serviceOf(service({ type: "LoadBalancer", externalIPs: ["5.6.7.8"] }, {}, status));
  assert.deepEqual(balanced.externalAddresses, ["1.2.3.4", "lb.example.com", "5.6.7.8"]);
  assert.equal(serviceOf(service({}, {}, status)).externalAddresses, undefined);
  assert.equal(serviceOf(service({ type: "ExternalName", externalName: "a.com", clusterIP: "" })).aliasOf, "a.com");
});

test("a gateway behind ports of nodes is reached at the nodes it selects", () => {
  const node = (name: string, address: string, labels: object) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels },
    status: {
      addresses: [
        { type: "InternalIP", address: "10.0.0.1" },
        { type: "ExternalIP", address },
      ],
      odd: 1,
    },
  });
  const gateway = (selector: string, more: object = {}) =>
    serviceOf(
      service(
        { type: "NodePort", ports: [{ name: "tls", port: 15443, nodePort: 31443 }], ...more },
        { annotations: { "traffic.istio.io/nodeSelector": selector } },
      ),
      node("a", "1.1.1.1", { edge: "yes" }),
      node("b", "2.2.2.2", {}),
    );
  const found = gateway('{"edge": "yes"}');
  assert.deepEqual([found.externalAddresses, found.externalPorts], [["1.1.1.1"], { 15443: 31443 }]);
  assert.deepEqual(gateway("no json").externalAddresses, ["1.1.1.1", "2.2.2.2"]);
  assert.deepEqual(gateway("{}", { externalIPs: ["9.9.9.9"] }).externalAddresses, ["9.9.9.9"]);
});

test("one changed pod changes the endpoints of its services only", () => {
  const other = {
    ...service({}, { name: "other" }),
    spec: { clusterIP: "10.96.0.10", ports: [{ port: 80 }], selector: { app: "other" } },
  };
  const rest = [
    service(),
    other,
    slice([ofPod("web-1", "10.1.0.1"), ofPod("web-2", "10.1.0.2")]),
    pod("web-2", "10.1.0.2"),
    pod("other-1", "10.1.0.3", { metadata: { labels: { app: "other" } } }),
  ];
  const before = meshWith([...rest, pod("web-1", "10.1.0.1")]);
  const after = meshWith([...rest, pod("web-1", "10.1.0.1", { metadata: { labels: { version: "v2" } } })], {
    previous: before,
  });
  const elsewhere = "default/other.default.svc.cluster.local";
  assert.equal(after.endpoints.get(elsewhere), before.endpoints.get(elsewhere));
  assert.equal(after.services, before.services);
  assert.equal(endpoints(after)[1], endpoints(before)[1]);
  assert.equal(endpoints(after)[0]?.labels.version, "v2");
});
