import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf, objectsOf, type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { object, workload } from "../../../test/support/objects.ts";
import { translated } from "../../../test/support/translated.ts";

const tableOf = (yaml: string, proxy: ProxyOptions = {}) =>
  translated(meshOf(yaml), proxyOf({ ip: "10.9.0.1", ...proxy })).names.table;
const addresses = (...args: Parameters<typeof tableOf>) =>
  Object.fromEntries(Object.entries(tableOf(...args)).map(([host, { ips }]) => [host, ips]));
const service = (clusterIP: string) =>
  object("Service", "web", { clusterIP, selector: { app: "web" }, ports: [{ name: "http", port: 80 }] });
const entry = (spec: object) =>
  object("ServiceEntry", "ext", {
    hosts: ["ext.example.com"],
    ports: [{ number: 443, name: "tls", protocol: "TLS" }],
    resolution: "DNS",
    ...spec,
  });
const HOST = "web.default.svc.cluster.local";

test("a service has its address, and what short names are made of", () => {
  assert.deepEqual(
    { ...tableOf(service("10.96.0.1"))[HOST], $typeName: undefined },
    {
      ips: ["10.96.0.1"],
      registry: "Kubernetes",
      shortname: "web",
      namespace: "default",
      altHosts: [],
      $typeName: undefined,
    },
  );
});

test("a headless service has the addresses of its endpoints, of the proxy's network", () => {
  const yaml =
    service("None") +
    workload("web-1", "10.1.0.1", { network: "near" }) +
    workload("web-2", "10.1.0.2", { network: "far" });
  assert.deepEqual(addresses(yaml), { [HOST]: ["10.1.0.1", "10.1.0.2"] });
  assert.deepEqual(addresses(yaml, { metadata: { NETWORK: "near" } }), { [HOST]: ["10.1.0.1"] });
  assert.deepEqual(addresses(service("None")), {});
});

test("a host without an address has the one that was allocated, for proxies that ask their agent", () => {
  assert.deepEqual(addresses(entry({})), {});
  const [ip] = addresses(entry({}), { metadata: { DNS_CAPTURE: "true" } })["ext.example.com"] ?? [];
  assert.match(ip ?? "", /^240\.240\./);
});

test("ranges are no answer", () => {
  assert.deepEqual(addresses(entry({ resolution: "NONE", addresses: ["10.0.0.0/8"] })), {});
});

test("hosts that the proxy may not call are not there", () => {
  assert.deepEqual(addresses(entry({ addresses: ["10.1.1.1"], exportTo: ["."] }), { namespace: "other" }), {});
});

test("a headless service can be kept to the endpoints of the proxy's cluster", () => {
  const yaml = service("None") + workload("web-1", "10.1.0.1");
  const hosts = (multiclusterHeadless: boolean, CLUSTER_ID: string) => {
    const mesh = meshOf(yaml, { features: { multiclusterHeadless } });
    return Object.keys(translated(mesh, proxyOf({ ip: "10.9.0.1", metadata: { CLUSTER_ID } })).names.table);
  };
  assert.deepEqual(hosts(true, "other"), [HOST]);
  assert.deepEqual(hosts(false, "other"), []);
  assert.deepEqual(hosts(false, "Kubernetes"), [HOST]);
});

test("a host that listeners of a Sidecar know from several namespaces has all their addresses", () => {
  const entryOf = (namespace: string, addresses: readonly string[]) =>
    object("ServiceEntry", `${namespace}/twice`, {
      hosts: ["twice.example.com"],
      ports: [{ number: 80, name: "http", protocol: "HTTP" }],
      resolution: "DNS",
      addresses,
    });
  const sidecar = (...hosts: readonly string[]) =>
    object("Sidecar", "s", { egress: hosts.map((host, i) => ({ hosts: [host], ...(i === 0 && { port: PORT }) })) });
  const PORT = { number: 80, protocol: "HTTP", name: "http" };
  const both = entryOf("one", ["10.20.0.1", "10.20.0.2"]) + entryOf("two", ["10.20.0.2", "10.20.0.3"]);
  const known = (yaml: string) => addresses(both + yaml)["twice.example.com"];
  assert.deepEqual(known(sidecar("one/*", "two/*")), ["10.20.0.1", "10.20.0.2", "10.20.0.3"]);
  assert.deepEqual(known(sidecar("two/*", "two/*")), ["10.20.0.2", "10.20.0.3"]);
  assert.deepEqual(known(""), ["10.20.0.1", "10.20.0.2"]);
});

test("pods of other clusters have their names, where names of headless services stand for the own cluster alone", () => {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web-0", namespace: "default", labels: { app: "web" } },
    spec: { containers: [], hostname: "web-0", subdomain: "web" },
    status: { phase: "Running", podIP: "10.2.0.1", podIPs: [{ ip: "10.2.0.1" }] },
  };
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "web-1", namespace: "default", labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    ports: [{ name: "http", port: 80 }],
    endpoints: [{ addresses: ["10.2.0.1"], targetRef: { kind: "Pod", name: "web-0", namespace: "default" } }],
  };
  const objects = objectsOf(`${service("None")}${JSON.stringify(pod)}\n---\n${JSON.stringify(slice)}\n`);
  const mesh = meshOf(service("None"), {
    byApiServer: true,
    features: { multiclusterHeadless: false },
    remotes: [{ clusterId: "c2", objects }],
  });
  const { table } = translated(mesh, proxyOf()).names;
  assert.deepEqual(Object.keys(table), ["web-0.web.default.svc.cluster.local"]);
});
