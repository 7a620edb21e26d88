import assert from "node:assert/strict";
import { test } from "node:test";
import { parseObject } from "../kinds/parse-object.ts";

function problemsOf(apiVersion: string, kind: string, spec: object, labels: object = {}): string[] {
  const { problems } = parseObject({ apiVersion, kind, metadata: { name: "x", namespace: "ns", labels }, spec });
  return problems.map(({ severity, field }) => `${severity} ${field}`);
}

const ofEntry = (spec: object, labels?: object) => problemsOf("networking.istio.io/v1", "ServiceEntry", spec, labels);
const ofWorkload = (spec: object) => problemsOf("networking.istio.io/v1", "WorkloadEntry", spec);
const ofService = (spec: object) => problemsOf("v1", "Service", spec);
const ofPolicy = (spec: object) => problemsOf("security.istio.io/v1", "PeerAuthentication", spec);

const HTTP = { name: "http", number: 80, protocol: "HTTP" };
const DNS = { hosts: ["a.com"], ports: [HTTP], resolution: "DNS" };

test("service entries of each resolution are fine", () => {
  assert.deepEqual(ofEntry(DNS), []);
  assert.deepEqual(ofEntry({ hosts: ["*.a.com"], ports: [HTTP], addresses: ["10.0.0.0/8"] }), []);
  assert.deepEqual(
    ofEntry({
      hosts: ["a.com", "b.com"],
      ports: [HTTP, { name: "tls", number: 443, protocol: "tls", targetPort: 8443 }],
      resolution: "STATIC",
      location: "MESH_INTERNAL",
      endpoints: [{ address: "1.2.3.4", ports: { http: 8080 }, labels: { version: "v1" } }],
      exportTo: ["~"],
    }),
    [],
  );
  assert.deepEqual(ofEntry({ ...DNS, endpoints: [{ address: "b.com" }, { address: "::1" }] }), []);
  assert.deepEqual(ofEntry({ ...DNS, resolution: "STATIC", workloadSelector: { labels: { app: "a" } } }), []);
  assert.deepEqual(ofEntry({ hosts: ["*.a.com"], ports: [HTTP], resolution: "DYNAMIC_DNS" }), []);
});

test("a service entry that selects by no labels is told to select nothing", () => {
  const spec = { ...DNS, workloadSelector: { labels: {} } };
  const object = { apiVersion: "networking.istio.io/v1", kind: "ServiceEntry", metadata: { name: "x" }, spec };
  const { problems } = parseObject(object);
  assert.deepEqual(
    problems.map(({ message }) => message),
    ["selects nothing, since it is empty"],
  );
});

test("service entries are checked", () => {
  const STATIC = { ...DNS, resolution: "STATIC" };
  const cases: [object, string[]][] = [
    [{}, ["error spec.hosts"]],
    [{ ...DNS, hosts: [] }, ["error spec.hosts"]],
    [{ ...STATIC, hosts: ["*"] }, ["error spec.hosts[0]"]],
    [{ ...STATIC, hosts: ["*a.com"] }, ["warning spec.hosts[0]"]],
    [{ ...DNS, hosts: ["*.a.com"] }, ["error spec.hosts[0]"]],
    [{ ...STATIC, addresses: ["10.0.0.0/40", "a"] }, ["error spec.addresses[0]", "error spec.addresses[1]"]],
    [{ ...DNS, addresses: ["10.0.0.0/8"] }, ["error spec.addresses"]],
    [{ ...DNS, ports: [HTTP, HTTP] }, ["error spec.ports[1].name", "error spec.ports[1].number"]],
    [
      { ...DNS, ports: [{ name: "a_b", number: 0, protocol: "X", targetPort: 70000 }] },
      [
        "error spec.ports[0].name",
        "error spec.ports[0].number",
        "error spec.ports[0].targetPort",
        "error spec.ports[0].protocol",
      ],
    ],
    [{ ...DNS, resolution: "NONE", endpoints: [{ address: "1.1.1.1" }] }, ["error spec.endpoints"]],
    [{ ...DNS, resolution: "NONE", workloadSelector: { labels: { a: "b" } } }, ["warning spec.workloadSelector"]],
    [{ ...DNS, workloadSelector: { labels: { a: "b" } }, endpoints: [{ address: "a.com" }] }, ["error spec.endpoints"]],
    [{ ...DNS, workloadSelector: { labels: { a: "b" } }, endpoints: [] }, []],
    [{ ...STATIC, workloadSelector: { labels: { a: "*" } } }, ["error spec.workloadSelector.labels.a"]],
    [{ ...STATIC, workloadSelector: {} }, ["warning spec.workloadSelector.labels"]],
    [{ ...STATIC, endpoints: [{ address: "b.com" }] }, ["error spec.endpoints[0].address"]],
    [{ ...STATIC, endpoints: [{ address: "unix:///a", ports: { http: 1 } }] }, ["error spec.endpoints[0].ports"]],
    [{ ...STATIC, endpoints: [{ address: "1.1.1.1", ports: { x: 1 } }] }, ["error spec.endpoints[0].ports.x"]],
    [{ ...DNS, endpoints: [{}] }, ["error spec.endpoints[0].address"]],
    [
      { ...DNS, resolution: "DNS_ROUND_ROBIN", endpoints: [{ address: "a" }, { address: "b" }] },
      ["error spec.endpoints"],
    ],
    [{ ...DNS, hosts: ["a.com", "b.com"], ports: [{ ...HTTP, protocol: "TCP" }] }, ["error spec.ports[0].protocol"]],
    [
      { ...DNS, hosts: ["a.com", "b.com"], addresses: ["1.1.1.1"], ports: [{ ...HTTP, protocol: "TLS" }] },
      ["warning spec.hosts"],
    ],
    [{ hosts: ["a.com"], ports: [{ ...HTTP, protocol: "TCP" }] }, ["warning spec.addresses"]],
    [
      { ...DNS, resolution: "DYNAMIC_DNS", location: "MESH_INTERNAL", addresses: ["1.1.1.1"] },
      ["error spec.hosts[0]", "error spec.addresses", "error spec.location"],
    ],
    [{ ...DNS, resolution: "MAGIC" }, ["error spec.resolution"]],
    [{ ...DNS, exportTo: ["~", "a"] }, ["error spec.exportTo"]],
  ];
  for (const [spec, expected] of cases) assert.deepEqual(ofEntry(spec), expected, JSON.stringify(spec));
});

test("a TCP port needs an address where none is allocated", () => {
  const spec = { ...DNS, ports: [{ ...HTTP, protocol: "TCP" }] };
  assert.deepEqual(ofEntry(spec), []);
  assert.deepEqual(ofEntry(spec, { "networking.istio.io/enable-autoallocate-ip": "False" }), [
    "warning spec.addresses",
  ]);
});

test("workload entries are checked", () => {
  const cases: [object, string[]][] = [
    [{ address: "10.0.0.1", ports: { http: 80 }, serviceAccount: "a" }, []],
    [{ address: "vm.example.com" }, []],
    [{ address: "unix:///run/x" }, []],
    [{}, ["error spec.address"]],
    [{ network: "a" }, ["warning spec.address"]],
    [{ address: "a b" }, ["error spec.address"]],
    [{ address: "unix://x/" }, ["error spec.address"]],
    [{ address: "1.1.1.1", ports: { "a.b": 0 } }, ['error spec.ports["a.b"]', 'error spec.ports["a.b"]']],
    [{ address: "1.1.1.1", labels: { a: "b c" } }, ["error spec.labels.a"]],
    [{ address: "1.1.1.1", weight: -1 }, ["error spec.weight"]],
  ];
  for (const [spec, expected] of cases) assert.deepEqual(ofWorkload(spec), expected, JSON.stringify(spec));
});

test("services are checked", () => {
  const cases: [object, string[]][] = [
    [{ ports: [{ port: 80, targetPort: "http" }], selector: { app: "a" } }, []],
    [{ clusterIP: "None" }, []],
    [{ type: "ExternalName", externalName: "a.com" }, []],
    [{ type: "ExternalName" }, ["error spec.externalName"]],
    [{}, ["error spec.ports"]],
    [{ ports: [{}] }, ["error spec.ports[0].port"]],
    [{ ports: [{ port: 0, targetPort: 70000 }] }, ["error spec.ports[0].port", "error spec.ports[0].targetPort"]],
    [
      { ports: [{ port: 1, name: "a" }, { port: 2 }, { port: 3, name: "a" }] },
      ["error spec.ports[1].name", "error spec.ports[2].name"],
    ],
    [{ ports: [{ port: 80, protocol: "HTTP" }] }, ["error spec.ports[0].protocol"]],
    [{ ports: [{ port: 80 }], clusterIP: "x" }, ["error spec.clusterIP"]],
    [{ ports: [{ port: 80 }], selector: { a: "b c" } }, ["error spec.selector.a"]],
  ];
  for (const [spec, expected] of cases) assert.deepEqual(ofService(spec), expected, JSON.stringify(spec));
  const { problems } = parseObject({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "a.b" },
    spec: { ports: [{ port: 1 }] },
  });
  assert.deepEqual(
    problems.map(({ field }) => field),
    ["metadata.name"],
  );
});

test("peer authentications are checked", () => {
  const selector = { matchLabels: { app: "a" } };
  const cases: [object, string[]][] = [
    [{}, []],
    [{ mtls: { mode: "STRICT" } }, []],
    [{ selector, portLevelMtls: { "80": { mode: "DISABLE" } } }, []],
    [{ mtls: { mode: "strict" } }, ["error spec.mtls.mode"]],
    [{ portLevelMtls: { "80": { mode: "DISABLE" } } }, ["error spec.portLevelMtls"]],
    [{ selector, portLevelMtls: {} }, ["error spec.portLevelMtls"]],
    [
      { selector, portLevelMtls: { "0": {}, http: {}, "70000": {} } },
      ["error spec.portLevelMtls.0", "error spec.portLevelMtls.70000", "error spec.portLevelMtls.http"],
    ],
    [{ selector: { matchLabels: { "": "a" } } }, ["error spec.selector.matchLabels"]],
    [{ selector: {} }, ["warning spec.selector.matchLabels"]],
  ];
  for (const [spec, expected] of cases) assert.deepEqual(ofPolicy(spec), expected, JSON.stringify(spec));
});
