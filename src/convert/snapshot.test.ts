import assert from "node:assert/strict";
import { test } from "node:test";
import type { Endpoint } from "#model/service/endpoint.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { meshOf, objectsOf } from "../../test/support/mesh.ts";

function yamlOf(...documents: object[]): string {
  return documents.map((document) => JSON.stringify(document)).join("\n---\n");
}

function service(name: string, spec: object, metadata: object = {}): object {
  return { apiVersion: "v1", kind: "Service", metadata: { name, ...metadata }, spec };
}

function entry(name: string, spec: object, metadata: object = {}): object {
  return { apiVersion: "networking.istio.io/v1", kind: "ServiceEntry", metadata: { name, ...metadata }, spec };
}

function workload(name: string, spec: object, metadata: object = {}): object {
  return { apiVersion: "networking.istio.io/v1", kind: "WorkloadEntry", metadata: { name, ...metadata }, spec };
}

function serviceOf(snapshot: Snapshot, hostname: string): Service {
  const found = snapshot.services.find((candidate) => candidate.hostname === hostname);
  assert.ok(found, `no service ${hostname}`);
  return found;
}

function endpointsOf(snapshot: Snapshot, key: `${string}/${string}`): readonly Endpoint[] {
  const set = snapshot.endpoints.get(key);
  assert.ok(set, `no endpoints of ${key}`);
  return set.endpoints;
}

const HTTPBIN = "httpbin.default.svc.cluster.local";
const PORTS = [{ name: "http", port: 8000, targetPort: 80 }];

test("a Service becomes a service with an address in the cluster's range", () => {
  const found = serviceOf(meshOf(yamlOf(service("httpbin", { ports: PORTS }, { labels: { a: "b" } }))), HTTPBIN);
  assert.match(found.addresses[0] ?? "", /^10\.(9[6-9]|10\d|11[01])\./);
  assert.deepEqual(
    { ...found, addresses: [] },
    {
      hostname: HTTPBIN,
      name: "httpbin",
      namespace: "default",
      registry: "Kubernetes",
      addresses: [],
      autoAddress: undefined,
      ports: [{ name: "http", port: 8000, protocol: "HTTP" }],
      resolution: "static",
      meshExternal: false,
      headless: false,
      labels: { a: "b" },
      exportTo: ["*"],
      subjectAltNames: [],
      createdAt: 0,
    },
  );
});

test("a Service keeps the addresses its user gave", () => {
  const mesh = meshOf(
    yamlOf(
      service("one", { ports: PORTS, clusterIP: "10.96.0.1", clusterIPs: ["10.96.0.1"] }),
      service("two", { ports: PORTS, clusterIP: "10.96.0.2", clusterIPs: ["10.96.0.2", "fd00::2"] }),
      service("headless", { ports: PORTS, clusterIP: "None" }),
      service("alias", { type: "ExternalName", externalName: "example.com" }),
    ),
  );
  const of = (name: string) => serviceOf(mesh, `${name}.default.svc.cluster.local`);
  assert.deepEqual(of("one").addresses, ["10.96.0.1"]);
  assert.deepEqual(of("two").addresses, ["10.96.0.2", "fd00::2"]);
  assert.deepEqual(
    [of("headless").addresses, of("headless").headless, of("headless").resolution],
    [[], true, "passthrough"],
  );
  assert.deepEqual([of("alias").addresses, of("alias").resolution, of("alias").meshExternal], [[], "alias", true]);
});

test("the protocol of a port is declared by appProtocol or the first part of its name", () => {
  const cases: [object, string][] = [
    [{ name: "http-web" }, "HTTP"],
    [{ name: "GRPC-web-x" }, "GRPC-Web"],
    [{ name: "grpc-x" }, "GRPC"],
    [{ name: "http2" }, "HTTP2"],
    [{ name: "https" }, "HTTPS"],
    [{ name: "mongo-db" }, "Mongo"],
    [{ name: "web" }, "Unsupported"],
    [{ name: "httpx" }, "Unsupported"],
    [{ name: "http", protocol: "UDP" }, "UDP"],
    [{ name: "http", appProtocol: "tcp" }, "TCP"],
    [{ name: "http", appProtocol: "kubernetes.io/h2c" }, "HTTP2"],
    [{ name: "http", appProtocol: "kubernetes.io/wss" }, "HTTPS"],
    [{ name: "db", port: 3306 }, "TCP"],
    [{ name: "http", port: 3306 }, "HTTP"],
  ];
  for (const [port, protocol] of cases) {
    const mesh = meshOf(yamlOf(service("a", { ports: [{ port: 1, ...port }] })));
    assert.equal(mesh.services[0]?.ports[0]?.protocol, protocol, JSON.stringify(port));
  }
});

test("annotations of a Service say who sees it and who may serve it", () => {
  const annotations = {
    "networking.istio.io/exportTo": "., other",
    "alpha.istio.io/canonical-serviceaccounts": "x@example.com",
    "alpha.istio.io/kubernetes-serviceaccounts": "sa",
  };
  const found = serviceOf(meshOf(yamlOf(service("httpbin", { ports: PORTS }, { annotations }))), HTTPBIN);
  assert.deepEqual(found.exportTo, [".", "other"]);
  assert.deepEqual(found.subjectAltNames, ["x@example.com", "spiffe://cluster.local/ns/default/sa/sa"]);
});

test("a Service selects workloads of its namespace by all of its labels", () => {
  const labels = { app: "httpbin", version: "v1" };
  const mesh = meshOf(
    yamlOf(
      service("httpbin", { ports: PORTS, selector: labels }),
      service("unselective", { ports: PORTS }),
      workload("one", { address: "10.0.0.1", serviceAccount: "sa" }, { labels }),
      workload("two", { address: "10.0.0.2", labels }),
      workload("half", { address: "10.0.0.3", labels: { app: "httpbin" } }),
      workload("elsewhere", { address: "10.0.0.4", labels }, { namespace: "other" }),
      workload("named", { address: "vm.example.com", labels }),
    ),
  );
  const found = endpointsOf(mesh, `default/${HTTPBIN}`);
  assert.deepEqual(
    found.map(({ address, workloadName, tlsMode, serviceAccount }) => [address, workloadName, tlsMode, serviceAccount]),
    [
      ["10.0.0.1", "one", "istio", "sa"],
      ["10.0.0.2", "two", "disabled", ""],
    ],
  );
  assert.deepEqual(mesh.endpoints.get(`default/${HTTPBIN}`)?.identities, ["spiffe://cluster.local/ns/default/sa/sa"]);
  assert.deepEqual(endpointsOf(mesh, "default/unselective.default.svc.cluster.local"), []);
});

test("the port of an endpoint is found by number, or by name through the workload", () => {
  const ports = [
    { name: "http", port: 8000, targetPort: 80 },
    { name: "plain", port: 9000 },
    { name: "own", port: 1, targetPort: 2 },
    { name: "by-name", port: 3, targetPort: "admin" },
    { name: "unknown", port: 4, targetPort: "constructor" },
  ];
  const mesh = meshOf(
    yamlOf(
      service("httpbin", { ports, selector: { app: "a" } }),
      workload("one", { address: "10.0.0.1", labels: { app: "a" }, ports: { own: 22, admin: 33 } }),
    ),
  );
  assert.deepEqual(endpointsOf(mesh, `default/${HTTPBIN}`)[0]?.ports, {
    http: 80,
    plain: 9000,
    own: 22,
    "by-name": 33,
  });
});

test("a workload that knows no port of a service is no endpoint of it, and its identity is not believed", () => {
  const spec = { address: "10.0.0.1", labels: { app: "a" }, serviceAccount: "vm", ports: { other: 1 } };
  const ports = [{ name: "http", port: 80, targetPort: "web" }];
  const mesh = meshOf(yamlOf(service("httpbin", { ports, selector: { app: "a" } }), workload("one", spec)));
  assert.deepEqual(mesh.endpoints.get(`default/${HTTPBIN}`), { endpoints: [], identities: [] });
});

test("a workload is in the network of a cluster only where the cluster is not that of the configuration", () => {
  const [network, address] = ["topology.istio.io/network", "10.0.0.1"];
  const system = {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "istio-system", labels: { [network]: "n1" } },
  };
  const objects = yamlOf(
    system,
    service("httpbin", { ports: PORTS, selector: { app: "a" } }),
    workload("one", { address, labels: { app: "a" } }),
  );
  const networksIn = (mesh: Snapshot) =>
    endpointsOf(mesh, `default/${HTTPBIN}`).map(({ clusterId, labels }) => `${clusterId}/${labels[network] ?? ""}`);
  assert.deepEqual(networksIn(meshOf(objects)), ["Kubernetes/"]);
  const remotes = [{ clusterId: "c2", objects: objectsOf(objects) }];
  assert.deepEqual(networksIn(meshOf("", { remotes })), ["c2/n1"]);
});

test("a workload says more about its endpoint", () => {
  const spec = {
    address: "10.0.0.1",
    labels: { app: "a", "security.istio.io/tlsMode": "istio", "istio-locality": "eu.west" },
    network: "n1",
    weight: 5,
  };
  const metadata = {
    labels: { app: "b", "service.istio.io/workload-name": "vm" },
    annotations: { "istio.io/autoRegistrationGroup": "group" },
  };
  const mesh = meshOf(
    yamlOf(service("httpbin", { ports: PORTS, selector: { app: "b" } }), workload("one", spec, metadata)),
    { features: { clusterId: "c1" } },
  );
  const [found] = endpointsOf(mesh, `default/${HTTPBIN}`);
  assert.equal(found?.workloadName, "group");
  assert.deepEqual(found?.labels, {
    ...spec.labels,
    ...metadata.labels,
    "topology.kubernetes.io/region": "eu",
    "topology.kubernetes.io/zone": "west",
    "topology.istio.io/cluster": "c1",
    "topology.istio.io/network": "n1",
  });
  assert.deepEqual(
    [found?.tlsMode, found?.network, found?.locality, found?.weight, found?.clusterId, found?.health],
    ["istio", "n1", "eu/west", 5, "c1", "unknown"],
  );
});

test("a ServiceEntry becomes one service for each host", () => {
  const spec = {
    hosts: ["a.com", "b.com"],
    ports: [{ name: "tls", number: 443, protocol: "tls" }],
    resolution: "DNS",
    subjectAltNames: ["san"],
  };
  const mesh = meshOf(yamlOf(entry("ext", spec, { namespace: "ns" })));
  assert.deepEqual(
    mesh.services.map(({ hostname, namespace, registry, resolution, meshExternal }) => [
      hostname,
      namespace,
      registry,
      resolution,
      meshExternal,
    ]),
    [
      ["a.com", "ns", "External", "dns", true],
      ["b.com", "ns", "External", "dns", true],
    ],
  );
  const [a, b] = mesh.services;
  assert.match(a?.autoAddress ?? "", /^240\.240\.\d+\.\d+$/);
  assert.notEqual(a?.autoAddress, b?.autoAddress);
  assert.deepEqual(a?.ports, [{ name: "tls", port: 443, protocol: "TLS" }]);
  assert.deepEqual(a?.subjectAltNames, ["san"]);
  assert.deepEqual(
    endpointsOf(mesh, "ns/a.com").map(({ address, ports }) => [address, ports]),
    [["a.com", { tls: 443 }]],
  );
});

test("hosts get an address of ours only where that helps", () => {
  const http = { ports: [{ name: "http", number: 80, protocol: "HTTP" }] };
  const optedOut = { labels: { "networking.istio.io/enable-autoallocate-ip": "false" } };
  const cases: [object, object][] = [
    [{ hosts: ["a.com"], ...http, resolution: "NONE" }, {}],
    [{ hosts: ["a.com"], ...http, resolution: "STATIC", addresses: ["1.1.1.1"] }, {}],
    [{ hosts: ["*.a.com"], ...http, resolution: "STATIC" }, {}],
    [{ hosts: ["a.com"], ...http, resolution: "DNS" }, optedOut],
  ];
  for (const [spec, metadata] of cases) {
    const mesh = meshOf(yamlOf(entry("ext", spec, metadata)));
    assert.equal(mesh.services[0]?.autoAddress, undefined, JSON.stringify(spec));
  }
});

test("addresses of a ServiceEntry may be networks", () => {
  const addresses = ["10.1.0.0/16", "10.2.0.1/32", "fd00::1/128", "10.3.0.1"];
  const mesh = meshOf(yamlOf(entry("ext", { hosts: ["a.com"], ports: [], addresses })));
  assert.deepEqual(mesh.services[0]?.addresses, ["10.1.0.0/16", "10.2.0.1", "fd00::1", "10.3.0.1"]);
  assert.equal(mesh.services[0]?.resolution, "passthrough");
});

test("endpoints of a ServiceEntry are those it lists or selects", () => {
  const ports = [
    { name: "http", number: 80, protocol: "HTTP" },
    { name: "alt", number: 81, protocol: "HTTP", targetPort: 8081 },
  ];
  const mesh = meshOf(
    yamlOf(
      entry("listed", {
        hosts: ["listed.com"],
        ports,
        resolution: "STATIC",
        location: "MESH_INTERNAL",
        endpoints: [{ address: "10.0.0.1", ports: { http: 8080 }, serviceAccount: "sa" }, { address: "10.0.0.2" }],
      }),
      entry("selecting", {
        hosts: ["selecting.com"],
        ports,
        resolution: "STATIC",
        workloadSelector: { labels: { app: "a" } },
      }),
      entry("byname", { hosts: ["byname.com"], ports, resolution: "DNS", workloadSelector: { labels: { app: "a" } } }),
      entry("socket", {
        hosts: ["socket.com"],
        ports: ports.slice(0, 1),
        resolution: "STATIC",
        endpoints: [{ address: "unix:///run/x" }],
      }),
      workload("one", { address: "10.0.0.3", labels: { app: "a" } }),
      workload("two", { address: "vm.com", labels: { app: "a" } }),
      workload("three", { network: "far", labels: { app: "a" } }),
      service("selected", { ports: PORTS, selector: { app: "a" } }),
    ),
  );
  const of = (host: string) => endpointsOf(mesh, `default/${host}`).map(({ address, ports }) => [address, ports]);
  assert.deepEqual(of("listed.com"), [
    ["10.0.0.1", { http: 8080, alt: 8081 }],
    ["10.0.0.2", { http: 80, alt: 8081 }],
  ]);
  assert.deepEqual(mesh.endpoints.get("default/listed.com")?.identities, ["spiffe://cluster.local/ns/default/sa/sa"]);
  assert.equal(serviceOf(mesh, "listed.com").meshExternal, false);
  assert.deepEqual(of("selecting.com"), [
    ["10.0.0.3", { http: 80, alt: 8081 }],
    ["", { http: 80, alt: 8081 }],
  ]);
  const places = (host: string) => of(host).map(([address]) => address);
  assert.deepEqual(places("byname.com"), ["10.0.0.3", "", "vm.com"]);
  assert.deepEqual(places("selected.default.svc.cluster.local"), ["10.0.0.3", ""]);
  assert.deepEqual(of("socket.com"), [["unix:///run/x", { http: 0 }]]);
});

test("a host that two entries define has the endpoints of both", () => {
  const spec = (address: string, serviceAccount: string) => ({
    hosts: ["a.com"],
    ports: [{ name: "http", number: 80, protocol: "HTTP" }],
    resolution: "STATIC",
    endpoints: [{ address, serviceAccount }],
  });
  const mesh = meshOf(yamlOf(entry("one", spec("10.0.0.1", "b")), entry("two", spec("10.0.0.2", "a"))));
  assert.deepEqual(
    endpointsOf(mesh, "default/a.com").map(({ address }) => address),
    ["10.0.0.1", "10.0.0.2"],
  );
  assert.deepEqual(mesh.endpoints.get("default/a.com")?.identities, [
    "spiffe://cluster.local/ns/default/sa/a",
    "spiffe://cluster.local/ns/default/sa/b",
  ]);
});

test("lists are sorted by age, then by name and namespace: the order in which objects win", () => {
  const at = (creationTimestamp: string, namespace: string) => ({ creationTimestamp, namespace });
  const mesh = meshOf(
    yamlOf(
      service("b", { ports: PORTS }, at("2024-01-02T00:00:00Z", "x")),
      service("a", { ports: PORTS }, at("2024-01-02T00:00:00Z", "y")),
      service("a", { ports: PORTS }, at("2024-01-02T00:00:00Z", "x")),
      service("z", { ports: PORTS }, at("2024-01-01T00:00:00Z", "z")),
    ),
  );
  assert.deepEqual(
    mesh.services.map(({ namespace, name }) => `${namespace}/${name}`),
    ["z/z", "x/a", "y/a", "x/b"],
  );
});

const MESH = [
  service("httpbin", { ports: PORTS, selector: { app: "a" } }),
  service("sleep", { ports: PORTS, selector: { app: "sleep" } }),
  entry("ext", { hosts: ["a.com"], ports: [{ name: "tls", number: 443, protocol: "TLS" }], resolution: "DNS" }),
  workload("one", { address: "10.0.0.1", serviceAccount: "sa", labels: { app: "a" } }),
  {
    apiVersion: "networking.istio.io/v1",
    kind: "VirtualService",
    metadata: { name: "vs" },
    spec: { hosts: ["httpbin"], http: [{ route: [{ destination: { host: "httpbin" } }] }] },
  },
];

test("a mesh that did not change is the same snapshot", () => {
  const before = meshOf(yamlOf(...MESH));
  assert.equal(meshOf(yamlOf(...MESH), { previous: before }), before);
  assert.equal(meshOf(`# moved\n\n${yamlOf(...MESH)}`, { previous: before }), before);
});

test("a changed endpoint changes its endpoint set and nothing else", () => {
  const before = meshOf(yamlOf(...MESH));
  const after = meshOf(yamlOf(...MESH).replace("10.0.0.1", "10.0.0.9"), { previous: before });
  assert.equal(after.version, before.version + 1);
  assert.equal(after.services, before.services);
  assert.equal(after.virtualServices, before.virtualServices);
  assert.equal(after.mesh, before.mesh);
  assert.equal(after.features, before.features);
  const key = `default/${HTTPBIN}` as const;
  assert.notEqual(after.endpoints.get(key), before.endpoints.get(key));
  assert.equal(after.endpoints.get(key)?.identities, before.endpoints.get(key)?.identities);
  assert.equal(after.endpoints.get("default/a.com"), before.endpoints.get("default/a.com"));
});

test("an endpoint that is added leaves the others what they were", () => {
  const two = workload("two", { address: "10.0.0.2", labels: { app: "a" } });
  const first = workload("before-one", { address: "10.0.0.3", labels: { app: "a" } });
  const key = `default/${HTTPBIN}` as const;
  const before = meshOf(yamlOf(...MESH, two));
  const after = meshOf(yamlOf(...MESH, two, first), { previous: before });
  assert.equal(after.endpoints.get(key)?.endpoints.length, 3);
  assert.equal(after.endpoints.get(key)?.endpoints[1], before.endpoints.get(key)?.endpoints[0]);
  assert.equal(after.endpoints.get(key)?.endpoints[2], before.endpoints.get(key)?.endpoints[1]);
});

test("a changed service keeps the others, their order and their addresses", () => {
  const before = meshOf(yamlOf(...MESH));
  const more = service("another", { ports: PORTS });
  const after = meshOf(yamlOf(more, ...MESH).replace("8000", "8001"), { previous: before });
  assert.notEqual(after.services, before.services);
  for (const hostname of ["a.com", "sleep.default.svc.cluster.local"]) {
    assert.equal(serviceOf(after, hostname), serviceOf(before, hostname));
  }
  const [old, changed] = [serviceOf(before, HTTPBIN), serviceOf(after, HTTPBIN)];
  assert.deepEqual([changed.ports[0]?.port, changed.addresses, changed.labels], [8000, old.addresses, old.labels]);
  assert.equal(serviceOf(after, "another.default.svc.cluster.local").ports[0]?.port, 8001);
});

test("a changed virtual service is a new object in a new list, with unchanged parts", () => {
  const before = meshOf(yamlOf(...MESH));
  const after = meshOf(yamlOf(...MESH).replace('"hosts":["httpbin"]', '"hosts":["httpbin.default"]'), {
    previous: before,
  });
  assert.notEqual(after.virtualServices[0], before.virtualServices[0]);
  assert.equal(after.virtualServices[0]?.spec.http, before.virtualServices[0]?.spec.http);
  assert.equal(after.services, before.services);
  assert.equal(after.endpoints, before.endpoints);
});

test("a changed mesh config reaches what depends on it", () => {
  const before = meshOf(yamlOf(...MESH));
  const after = meshOf(yamlOf(...MESH), { previous: before, mesh: { trustDomain: "td" } });
  assert.deepEqual(after.endpoints.get(`default/${HTTPBIN}`)?.identities, ["spiffe://td/ns/default/sa/sa"]);
  assert.deepEqual(serviceOf(after, HTTPBIN), serviceOf(before, HTTPBIN));
});

test("wildcards that only waypoints can resolve are services without endpoints", () => {
  const spec = {
    hosts: ["*.a.com"],
    ports: [{ name: "http", number: 80, protocol: "HTTP" }],
    resolution: "DYNAMIC_DNS",
  };
  const mesh = meshOf(yamlOf(entry("ext", spec)));
  assert.equal(serviceOf(mesh, "*.a.com").resolution, "dynamic-dns");
  assert.deepEqual(endpointsOf(mesh, "default/*.a.com"), []);
});

const HOSTS = { ports: [{ name: "http", number: 80, protocol: "HTTP" }], resolution: "DNS" };

test("addresses that a controller wrote into the status are those of the hosts", () => {
  const addresses = [
    { host: "a.com", value: "240.240.0.7" },
    { host: "a.com", value: "2001:2::7" },
    { host: "other.com", value: "240.240.0.8" },
    { host: "a.com", value: "odd" },
  ];
  const object = { ...entry("ext", { hosts: ["a.com", "b.com"], ...HOSTS }), status: { addresses, conditions: [] } };
  const mesh = meshOf(yamlOf(object));
  assert.deepEqual(
    [serviceOf(mesh, "a.com").autoAddress, serviceOf(mesh, "a.com").autoAddress6],
    ["240.240.0.7", "2001:2::7"],
  );
  assert.match(serviceOf(mesh, "b.com").autoAddress ?? "", /^240\.240\./);
  assert.match(serviceOf(mesh, "b.com").autoAddress6 ?? "", /^2001:2::f0f0:/);
  const unwanted = {
    ...object,
    metadata: { name: "x", labels: { "networking.istio.io/enable-autoallocate-ip": "false" } },
  };
  assert.equal(serviceOf(meshOf(yamlOf(unwanted)), "a.com").autoAddress, undefined);
});

test("addresses of hosts come from the ranges that were asked for", () => {
  const features = { autoRange4: "10.77.0.0/16", autoRange6: "fd00:77::/64" };
  const mesh = meshOf(yamlOf(entry("ext", { hosts: ["a.com"], ...HOSTS })), { features });
  assert.match(serviceOf(mesh, "a.com").autoAddress ?? "", /^10\.77\./);
  assert.match(serviceOf(mesh, "a.com").autoAddress6 ?? "", /^fd00:77::a4d:/);
});

test("where an API server is, only its controllers give addresses", () => {
  const mesh = meshOf(yamlOf(entry("ext", { hosts: ["a.com"], ...HOSTS })), { byApiServer: true });
  assert.equal(serviceOf(mesh, "a.com").autoAddress, undefined);
});

test("without a controller hosts have the addresses that everyone computes by hash", () => {
  const mesh = meshOf(
    yamlOf(entry("one", { hosts: ["a.com"], ...HOSTS }), entry("two", { hosts: ["a.com", "b.com"], ...HOSTS })),
    { features: { autoAllocate: false } },
  );
  const all = mesh.services.map(({ hostname, autoAddress }) => [hostname, autoAddress]);
  assert.equal(new Set(all.filter(([host]) => host === "a.com").map(([, address]) => address)).size, 1);
  assert.notEqual(serviceOf(mesh, "a.com").autoAddress, serviceOf(mesh, "b.com").autoAddress);
});
