import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MeshOptions, meshOf, objectsOf, type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import { viewsOf } from "../views/views.ts";
import { placeOf } from "./service-targets.ts";

const PORTS = [
  { name: "http", port: 80, targetPort: "web" },
  { name: "tcp", port: 81, targetPort: 9000 },
  { name: "tcp-2", port: 82, targetPort: 9000 },
  { name: "dns", port: 53, protocol: "UDP", targetPort: "dns" },
];
const SHOP =
  object("Service", "shop", { clusterIP: "10.96.0.1", selector: { app: "shop" }, ports: PORTS }) +
  object("Service", "beside", { clusterIP: "10.96.0.2", selector: { app: "shop" }, ports: [{ port: 7070 }] }) +
  object("Service", "other/shop", { clusterIP: "10.96.0.3", selector: { app: "shop" }, ports: [{ port: 1 }] }) +
  object("Service", "all", { clusterIP: "10.96.0.4", ports: [{ name: "http", port: 5000 }] }) +
  object("Service", "heads", { clusterIP: "None", selector: { app: "shop" }, ports: [{ name: "tcp", port: 6379 }] });

function pod(labels: object, ports: readonly object[] = []): string {
  const spec = { containers: [{ name: "c", image: "i", ports }] };
  const status = { phase: "Running", podIP: "10.1.0.1", podIPs: [{ ip: "10.1.0.1" }] };
  return `${JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "shop-1", namespace: "default", labels }, spec, status })}\n---\n`;
}

const NAMED = [
  { name: "web", containerPort: 8080 },
  { name: "dns", containerPort: 5353, protocol: "UDP" },
  { name: "dns", containerPort: 53 },
];

function ports(yaml: string, proxy: ProxyOptions, options: MeshOptions = { byApiServer: true }): readonly string[] {
  const { targets } = placeOf(meshOf(SHOP + yaml, options), proxyOf({ name: "shop-1", ip: "10.1.0.1", ...proxy }));
  return targets.map(({ service, port, targetPort }) => `${service.name} ${port.port}:${targetPort}`);
}

describe("a pod without endpoints", () => {
  test("is served by the services that select it", () => {
    assert.deepEqual(ports(pod({ app: "shop" }, NAMED), {}), [
      "beside 7070:7070",
      "heads 6379:6379",
      "shop 80:8080",
      "shop 81:9000",
      "shop 53:5353",
    ]);
  });

  test("is found by its address only where that is wanted, and once it is ready", () => {
    const odd = { name: "odd", labels: { app: "x" } };
    const waiting = pod({ app: "shop" });
    const ready = waiting.replace('"phase"', '"conditions":[{"type":"Ready","status":"True"}],"phase"');
    const found = (yaml: string, podsByAddress: boolean) =>
      ports(yaml, odd, { byApiServer: true, features: { podsByAddress } }).length;
    assert.deepEqual([found(ready, false), found(ready, true), found(waiting, true)], [0, 3, 0]);
  });

  test("lacks only the ports that it does not name", () => {
    assert.deepEqual(ports(pod({ app: "shop" }), {}), ["beside 7070:7070", "heads 6379:6379", "shop 81:9000"]);
  });

  test("has a named port where the service has it for the same of TCP, UDP and SCTP", () => {
    const service = (protocol: string) =>
      object("Service", "diameter", {
        clusterIP: "10.96.0.9",
        selector: { app: "diameter" },
        ports: [{ name: "tcp-diameter", port: 3868, protocol, targetPort: "diameter" }],
      });
    const own = (containerPort: number, protocol: string) => ({ name: "diameter", containerPort, protocol });
    const listed = [own(1, "SCTP"), own(2, "UDP"), own(3, "TCP")];
    const known = (protocol: string) => ports(service(protocol) + pod({ app: "diameter" }, listed), {});
    assert.deepEqual(["SCTP", "UDP", "TCP"].flatMap(known), ["diameter 3868:1", "diameter 3868:2", "diameter 3868:3"]);
    assert.deepEqual(ports(service("SCTP") + pod({ app: "diameter" }, [own(3, "TCP")]), {}), []);
    const told = (list: readonly object[]) =>
      ports(service("SCTP"), { labels: { app: "diameter" }, metadata: { POD_PORTS: JSON.stringify(list) } });
    assert.deepEqual([told(listed), told([own(3, "TCP")])], [["diameter 3868:1"], []]);
  });

  test("has the labels of its object, not those of its proxy", () => {
    assert.deepEqual(ports(pod({ app: "debugged" }), { labels: { app: "shop" } }), []);
    const place = placeOf(meshOf(pod({ app: "a", "topology.kubernetes.io/region": "r" })), proxyOf({ name: "shop-1" }));
    assert.equal(place.labels.app, "a");
    assert.equal(place.locality, "r");
  });

  test("is that of another cluster, with the services of that cluster", () => {
    const remote = (yaml: string) => ({ clusterId: "c2", objects: objectsOf(yaml) });
    const there = object("Service", "there", {
      clusterIP: "10.97.0.1",
      selector: { app: "shop" },
      ports: [{ port: 3 }],
    });
    const mesh: MeshOptions = { byApiServer: true, remotes: [remote(there + pod({ app: "shop" }))] };
    assert.deepEqual(ports("", { metadata: { CLUSTER_ID: "c2" } }, mesh), ["there 3:3"]);
    assert.deepEqual(ports("", { metadata: { CLUSTER_ID: "c3" }, labels: { app: "shop" } }, mesh), []);
    const here = { ...mesh, remotes: [remote(there)] };
    assert.ok(!ports(pod({ app: "shop" }), {}, here).includes("there 3:3"));
  });
});

test("a service that clusters define differently leads to ports of a pod as its own cluster says", () => {
  const there = object("Service", "shop", {
    clusterIP: "10.97.0.1",
    selector: { app: "shop" },
    ports: [{ name: "other", port: 8, targetPort: 9 }],
  });
  const remotes = [{ clusterId: "c2", objects: objectsOf(there + pod({ app: "shop" })) }];
  assert.deepEqual(ports("", { metadata: { CLUSTER_ID: "c2" } }, { byApiServer: true, remotes }), ["shop 8:9"]);
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "shop-1", namespace: "default", labels: { "kubernetes.io/service-name": "shop" } },
    addressType: "IPv4",
    ports: [{ name: "other", port: 10 }],
    endpoints: [{ addresses: ["10.1.0.1"] }],
  };
  const listing = there.replace('"selector":{"app":"shop"},', "") + pod({ app: "shop" }) + JSON.stringify(slice);
  const listed = [{ clusterId: "c2", objects: objectsOf(listing) }];
  const seen = ports("", { metadata: { CLUSTER_ID: "c2" } }, { byApiServer: true, remotes: listed });
  assert.deepEqual(seen, ["shop 8:10"]);
});

describe("a workload that no registry knows", () => {
  const POD_PORTS = JSON.stringify([
    { name: "web", containerPort: 8080, protocol: "TCP" },
    { name: "dns", containerPort: 5353, protocol: "UDP" },
  ]);

  test("is selected by what its proxy says of it", () => {
    assert.deepEqual(ports("", { labels: { app: "shop" }, metadata: { POD_PORTS } }), [
      "beside 7070:7070",
      "heads 6379:6379",
      "shop 80:8080",
      "shop 81:9000",
      "shop 53:5353",
    ]);
  });

  test("has nothing yet when its proxy lists ports, but not those that services name", () => {
    const unnamed = JSON.stringify([{ containerPort: 9000 }]);
    assert.deepEqual(ports("", { labels: { app: "shop" }, metadata: { POD_PORTS: unnamed } }), []);
  });

  test("has the ports with numbers when its proxy lists none", () => {
    const numbers = ["beside 7070:7070", "heads 6379:6379", "shop 81:9000"];
    for (const none of [undefined, "[]", "null", "[null]", '[{"name":"web"}]']) {
      assert.deepEqual(ports("", { labels: { app: "shop" }, metadata: { POD_PORTS: none } }), numbers);
    }
  });

  test("is nobody's without labels, with others, or in another cluster", () => {
    assert.deepEqual(ports("", {}), []);
    assert.deepEqual(ports("", { labels: { app: "else" } }), []);
    assert.deepEqual(ports("", { labels: { app: "shop" }, metadata: { CLUSTER_ID: "elsewhere" } }), []);
    assert.equal(ports("", { labels: { app: "shop" }, metadata: { CLUSTER_ID: "" } }).length, 3);
  });
});

test("a workload that a ServiceEntry lists with several ports has all of them", () => {
  const entry = object("ServiceEntry", "se", {
    hosts: ["se.test"],
    ports: [{ number: 80, name: "http", protocol: "HTTP" }],
    resolution: "STATIC",
    endpoints: [
      { address: "10.1.0.1", ports: { http: 8081 } },
      { address: "10.1.0.1", ports: { http: 8082 } },
      { address: "10.1.0.1", ports: { http: 8081 }, weight: 2 },
      { address: "10.1.0.2", ports: { http: 8083 } },
    ],
  });
  const { targets } = placeOf(meshOf(entry), proxyOf({ ip: "10.1.0.1" }));
  assert.deepEqual(
    targets.map(({ targetPort }) => targetPort),
    [8081, 8082],
  );
});

test("a proxy at the address of an endpoint that is written into a ServiceEntry keeps its own labels and place", () => {
  const entry = object("ServiceEntry", "se", {
    hosts: ["se.test"],
    ports: [{ number: 80, name: "http", protocol: "HTTP" }],
    resolution: "STATIC",
    endpoints: [{ address: "10.1.0.1", labels: { app: "of-the-endpoint" }, locality: "r/z" }],
  });
  const route = object("VirtualService", "vs", {
    hosts: ["se.test"],
    http: [
      { match: [{ sourceLabels: { app: "own" } }], directResponse: { status: 201 } },
      { match: [{ sourceLabels: { app: "of-the-endpoint" } }], directResponse: { status: 202 } },
    ],
  });
  const mesh = meshOf(entry + route);
  const proxy = proxyOf({ ip: "10.1.0.1", labels: { app: "own" } });
  const place = placeOf(mesh, proxy);
  assert.deepEqual([place.labels, place.locality, place.targets.length], [{}, "", 1]);
  const [condition] = viewsOf(mesh, proxy).outbound.sourceConditions;
  assert.match(condition ?? "", /own/);
  assert.equal(viewsOf(mesh, proxy).outbound.sourceConditions.length, 1);
});

describe("a WorkloadEntry", () => {
  const entry = object("WorkloadEntry", "vm", {
    address: "10.1.0.1",
    labels: { app: "shop" },
    ports: { tcp: 9999, web: 8888 },
    locality: "r/z",
  });

  test("beside pods is a machine: no UDP, no headless services, and labels and places as its proxy says", () => {
    assert.deepEqual(ports(entry, { labels: { app: "else" } }), [
      "beside 7070:7070",
      "shop 80:8888",
      "shop 81:9999",
      "shop 82:9000",
    ]);
    const place = placeOf(meshOf(SHOP + entry, { byApiServer: true }), proxyOf({ ip: "10.1.0.1" }));
    assert.deepEqual([place.labels, place.locality], [{}, ""]);
  });

  test("that a ServiceEntry selects is known by that", () => {
    const selecting = object("ServiceEntry", "se", {
      hosts: ["se.test"],
      ports: [{ number: 90, name: "dns", protocol: "UDP", targetPort: 53 }],
      resolution: "STATIC",
      workloadSelector: { labels: { app: "shop" } },
    });
    const place = placeOf(meshOf(entry + selecting, { byApiServer: true }), proxyOf({ ip: "10.1.0.1" }));
    assert.deepEqual(
      place.targets.map(({ targetPort }) => targetPort),
      [53],
    );
    assert.deepEqual([place.labels.app, place.locality], ["shop", "r/z"]);
  });

  test("stands in for a pod where there is no API server", () => {
    const own = object("WorkloadEntry", "w", {
      address: "10.1.0.1",
      labels: { app: "shop" },
      ports: { web: 8080, dns: 53 },
    });
    assert.deepEqual(ports(own, {}, {}), [
      "beside 7070:7070",
      "heads 6379:6379",
      "shop 80:8080",
      "shop 81:9000",
      "shop 53:53",
    ]);
  });
});

test("services that select nothing are in front of the pods that somebody lists", () => {
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "all-1", namespace: "default", labels: { "kubernetes.io/service-name": "all" } },
    addressType: "IPv4",
    ports: [{ name: "http", port: 5001 }],
    endpoints: [{ addresses: ["10.1.0.1"] }],
  };
  const yaml = pod({ app: "lonely" }) + JSON.stringify(slice);
  assert.deepEqual(ports(yaml, {}), ["all 5000:5001"]);
});

test("what is known of workloads stays the same until labels or ports change", () => {
  const before = meshOf(pod({ app: "a" }), { byApiServer: true });
  const same = meshOf(pod({ app: "a" }).replace("Running", "Pending"), { byApiServer: true, previous: before });
  assert.equal(same.workloads, before.workloads);
  const relabelled = meshOf(pod({ app: "b" }), { byApiServer: true, previous: before });
  assert.notEqual(relabelled.workloads, before.workloads);
});
