import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { finished } from "#lib/async/steps.ts";
import type { ObjectProblem } from "#model/ports.ts";
import { selfSigned } from "../../../test/support/certificates.ts";
import { objectsOf } from "../../../test/support/mesh.ts";
import { analysisSteps } from "./analyze.ts";
import { documentationUrl, levelOf } from "./message.ts";

const NETWORKING = "networking.istio.io/v1";

function object(kind: string, name: string, spec: object, metadata: object = {}): object {
  return { apiVersion: NETWORKING, kind, metadata: { name, namespace: "shop", ...metadata }, spec };
}

function core(kind: string, name: string, fields: object, metadata: object = {}): object {
  return { apiVersion: "v1", kind, metadata: { name, namespace: "shop", ...metadata }, ...fields };
}

/** Codes by object, in order. */
function codes(objects: readonly object[], problems: readonly ObjectProblem[] = []): Record<string, string> {
  const yaml = objects.map((each) => JSON.stringify(each)).join("\n---\n");
  const found = finished(analysisSteps({ objects: objectsOf(yaml), problems, mesh: DEFAULT_MESH_CONFIG }));
  return Object.fromEntries(
    [...found].map(([key, findings]) => [
      key.replace(/^[^/]*\/shop\//, ""),
      findings.map(({ code }) => code).join(" "),
    ]),
  );
}

const routeTo = (...destinations: object[]) => ({
  route: destinations.map((destination) => ({ destination, weight: 100 / destinations.length })),
});
const webService = core("Service", "web", {
  spec: {
    clusterIP: "10.0.0.1",
    ports: [
      { name: "http", port: 80 },
      { name: "tcp", port: 81 },
    ],
    selector: { app: "web" },
  },
});
const webPod = core(
  "Pod",
  "web-1",
  { spec: { containers: [{ name: "istio-proxy" }], nodeName: "n1" } },
  { labels: { app: "web" } },
);
const gateway = (name: string, servers: readonly object[], selector: object = { app: "web" }) =>
  object("Gateway", name, { selector, servers });
const server = (number: number, more: object = {}) => ({
  port: { number, name: `p${number}`, protocol: "HTTP" },
  hosts: ["a.example.com"],
  ...more,
});

test("delegates that are not there, are none, or are not for the one that names them", () => {
  const root = (delegate: object) => object("VirtualService", "v", { hosts: ["web"], http: [{ delegate }] });
  const leaf = (name: string, namespace: string, spec: object = {}) =>
    object(
      "VirtualService",
      name,
      { http: [routeTo({ host: "web.shop.svc.cluster.local", port: { number: 80 } })], ...spec },
      { namespace },
    );
  const one = (delegate: object, ...others: readonly object[]) => codes([webService, root(delegate), ...others]).v;
  assert.equal(one({ name: "d" }), "IST0101");
  assert.equal(one({ name: "d" }, leaf("d", "other")), "IST0101");
  assert.equal(one({ name: "d", namespace: "other" }, leaf("d", "other", { exportTo: ["."] })), "IST0101");
  assert.equal(one({ name: "d" }, leaf("d", "shop", { hosts: ["elsewhere"] })), "IST0101");
  assert.equal(one({ name: "d" }, leaf("d", "shop")), undefined);
  assert.equal(one({ name: "d", namespace: "other" }, leaf("d", "other", { exportTo: ["shop"] })), undefined);
});

test("destinations that are not there, and ports that are not named", () => {
  const routes = (...destinations: object[]) =>
    codes([webService, object("VirtualService", "v", { hosts: ["x"], http: [routeTo(...destinations)] })]).v;
  assert.equal(routes({ host: "web", port: { number: 80 } }), undefined);
  assert.equal(routes({ host: "gone" }), "IST0101");
  assert.equal(routes({ host: "web" }), "IST0112");
  assert.equal(routes({ host: "web", port: { number: 9 } }), "IST0101");
  assert.equal(routes({ host: "web", port: { number: 80 }, subset: "v1" }), "IST0101");
  assert.equal(routes({ host: "web.other.svc.cluster.local" }), "IST0101");
});

test("hosts are found where they are exported to, and by wildcards", () => {
  const entry = (hosts: readonly string[], more: object = {}) =>
    object("ServiceEntry", "e", {
      hosts,
      ports: [{ number: 80, name: "http", protocol: "HTTP" }],
      resolution: "NONE",
      ...more,
    });
  const routes = (host: string) => object("VirtualService", "v", { hosts: ["x"], http: [routeTo({ host })] });
  assert.equal(codes([entry(["a.example.com"]), routes("a.example.com")]).v, undefined);
  assert.equal(codes([entry(["*.example.com"]), routes("a.example.com")]).v, undefined);
  assert.equal(codes([entry(["a.example.com"], { exportTo: ["."] }), routes("a.example.com")]).v, undefined);
  assert.equal(codes([entry(["a.example.com"], { exportTo: ["other"] }), routes("a.example.com")]).v, "IST0101");
  const web = (exportTo: string) =>
    core(
      "Service",
      "web",
      { spec: { ports: [{ port: 80 }] } },
      { annotations: { "networking.istio.io/exportTo": exportTo } },
    );
  assert.equal(codes([web("~"), routes("web")]).v, "IST0101");
  assert.equal(codes([web(""), routes("web")]).v, undefined);
});

test("gateways of routes: those that are not there, and those that open other hosts", () => {
  const routes = (...gateways: string[]) =>
    object("VirtualService", "v", {
      hosts: ["a.example.com"],
      gateways,
      http: [routeTo({ host: "web", port: { number: 80 } })],
    });
  const opened = gateway("g", [server(80)]);
  assert.equal(codes([webService, webPod, opened, routes("g", "mesh")]).v, undefined);
  assert.equal(codes([webService, webPod, opened, routes("shop/g")]).v, undefined);
  assert.equal(codes([webService, webPod, opened, routes("missing")]).v, "IST0101 IST0132");
  const other = gateway("g", [server(80, { hosts: ["other/a.example.com"] })]);
  assert.equal(codes([webService, webPod, other, routes("g")]).v, "IST0132");
});

test("hosts that several VirtualServices have for sidecars", () => {
  const routes = (name: string, more: object = {}) =>
    object("VirtualService", name, { hosts: ["web"], http: [routeTo({ host: "web", port: { number: 80 } })], ...more });
  const both = codes([webService, routes("one"), routes("two", { hosts: ["web.shop.svc.cluster.local"] })]);
  assert.deepEqual(both, { one: "IST0109", two: "IST0109" });
  assert.deepEqual(
    codes([
      webService,
      webPod,
      gateway("g", [server(80)]),
      routes("one"),
      routes("two", { hosts: ["a.example.com"], gateways: ["g"] }),
    ]),
    {},
  );
  assert.deepEqual(codes([webService, routes("one", { exportTo: ["."] }), routes("two", { exportTo: ["other"] })]), {});
  assert.deepEqual(codes([webService, routes("one", { exportTo: ["."] }), routes("two")]), {
    one: "IST0109",
    two: "IST0109",
  });
});

test("subsets that only sidecars choose, and claims that nobody checks", () => {
  const rule = object("DestinationRule", "d", { host: "web", subsets: [{ name: "v1" }] });
  const opened = gateway("g", [server(80)]);
  const inMesh = object("VirtualService", "m", {
    hosts: ["web"],
    http: [routeTo({ host: "web", port: { number: 80 }, subset: "v1" })],
  });
  const atGateway = (match: readonly object[] = []) =>
    object("VirtualService", "v", {
      hosts: ["a.example.com"],
      gateways: ["g"],
      http: [{ ...routeTo({ host: "web", port: { number: 80 } }), ...(match.length > 0 && { match }) }],
    });
  assert.equal(codes([webService, webPod, rule, opened, inMesh, atGateway()]).v, "IST0140");
  const claim = [{ headers: { "@request.auth.claims.sub": { exact: "x" } } }];
  assert.equal(codes([webService, webPod, opened, atGateway(claim)]).v, "IST0149");
  const check = {
    ...object("RequestAuthentication", "r", { jwtRules: [{ issuer: "i", jwksUri: "https://k" }] }),
    apiVersion: "security.istio.io/v1",
  };
  assert.equal(codes([webService, webPod, opened, check, atGateway(claim)]).v, undefined);
});

test("gateways without pods, ports, certificates, and those that claim the same", () => {
  const { certificate, key } = selfSigned("a.example.com");
  assert.equal(codes([webService, gateway("g", [server(80)])]).g, "IST0101");
  assert.equal(codes([webService, webPod, gateway("g", [server(80), server(9)])]).g, "IST0162");
  const secured = server(81, {
    tls: { mode: "SIMPLE", credentialName: "c" },
    port: { number: 81, name: "s", protocol: "HTTPS" },
  });
  const credential = (stringData: object) => core("Secret", "c", { stringData });
  assert.equal(codes([webService, webPod, gateway("g", [secured])]).g, "IST0101");
  assert.equal(codes([webService, webPod, credential({ other: "x" }), gateway("g", [secured])]).g, "IST0161");
  const pair = credential({ "tls.crt": certificate, "tls.key": key });
  assert.equal(codes([webService, webPod, pair, gateway("g", [secured])]).g, undefined);
  const other = gateway("h", [{ ...secured, hosts: ["b.example.com"] }]);
  assert.deepEqual(codes([webService, webPod, pair, gateway("g", [secured]), other]), { g: "IST0138", h: "IST0138" });
  const rivals = codes([webService, webPod, gateway("g", [server(80)]), gateway("h", [server(80)])]);
  assert.deepEqual(rivals, { g: "IST0145", h: "IST0145" });
});

test("Sidecars without pods, and several for one pod or namespace", () => {
  const sidecar = (name: string, labels?: object) =>
    object("Sidecar", name, { egress: [{ hosts: ["./*"] }], ...(labels && { workloadSelector: { labels } }) });
  assert.deepEqual(codes([webPod, sidecar("a", { app: "none" }), sidecar("b")]), { a: "IST0101" });
  assert.deepEqual(codes([webPod, sidecar("a", { app: "web" }), sidecar("b", { app: "web" })]), {
    a: "IST0110",
    b: "IST0110",
  });
  assert.deepEqual(codes([sidecar("a"), sidecar("b")]), { a: "IST0111", b: "IST0111" });
});

test("DestinationRules for nobody, without pods, and without verification", () => {
  const rule = (spec: object) => object("DestinationRule", "d", { host: "web", ...spec });
  const node = core("Node", "n1", {}, { labels: { "topology.kubernetes.io/region": "r1" } });
  assert.equal(codes([rule({})]).d, "IST0174");
  assert.equal(codes([webService, webPod, rule({ subsets: [{ name: "a", labels: { app: "no" } }] })]).d, "IST0173");
  const region = { subsets: [{ name: "a", labels: { "topology.kubernetes.io/region": "r1" } }] };
  assert.equal(codes([webService, webPod, node, rule(region)]).d, undefined);
  const unnamed = core("Node", "n1", {}, { labels: { "topology.kubernetes.io/region": "" } });
  const nowhere = { subsets: [{ name: "a", labels: { "topology.kubernetes.io/region": "" } }] };
  assert.equal(codes([webService, webPod, unnamed, rule(nowhere)]).d, "IST0173", "an empty label counts as absent");
  const tls = { mode: "SIMPLE" };
  assert.equal(codes([webService, rule({ trafficPolicy: { tls } })]).d, "IST0128");
  assert.equal(
    codes([webService, rule({ trafficPolicy: { portLevelSettings: [{ port: { number: 80 }, tls }] } })]).d,
    "IST0129",
  );
  assert.equal(codes([webService, rule({ trafficPolicy: { tls: { ...tls, caCertificates: "/c" } } })]).d, undefined);
});

test("AuthorizationPolicies for nobody, or that name namespaces which are not there", () => {
  const policy = (spec: object) => ({
    ...object("AuthorizationPolicy", "p", spec),
    apiVersion: "security.istio.io/v1",
  });
  const namespace = (labels: object = {}) => core("Namespace", "shop", {}, { namespace: undefined, labels });
  assert.equal(codes([webPod, namespace(), policy({})]).p, undefined);
  assert.equal(codes([namespace(), policy({})]).p, "IST0127");
  assert.equal(codes([webPod, namespace(), policy({ selector: { matchLabels: { app: "no" } } })]).p, "IST0127");
  const plain = core("Pod", "p-1", { spec: { containers: [{ name: "app" }] } });
  assert.equal(codes([plain, namespace(), policy({})]).p, "IST0127");
  assert.equal(codes([plain, namespace({ "istio-injection": "enabled" }), policy({})]).p, undefined);
  const from = (...namespaces: string[]) => policy({ rules: [{ from: [{ source: { namespaces } }] }] });
  assert.equal(codes([webPod, namespace(), from("sh*", "*op", "SHOP")]).p, undefined);
  assert.equal(codes([webPod, namespace(), from("nowhere")]).p, "IST0101");
});

test("ServiceEntries of TCP without addresses, fields of old, and patches that may be ignored", () => {
  const entry = (more: object = {}) =>
    object("ServiceEntry", "e", {
      hosts: ["a.example.com"],
      ports: [{ number: 9, name: "t", protocol: "TCP" }],
      resolution: "DNS",
      ...more,
    });
  assert.equal(codes([entry()]).e, "IST0134");
  assert.equal(codes([entry({ addresses: ["10.0.0.9"] })]).e, undefined);
  assert.equal(
    codes([{ ...entry(), status: { addresses: [{ value: "240.240.0.1", host: "a.example.com" }] } }]).e,
    undefined,
  );
  const delayed = {
    fault: { delay: { fixedDelay: "1s", percent: 5 } },
    ...routeTo({ host: "web", port: { number: 80 } }),
  };
  assert.equal(codes([webService, object("VirtualService", "v", { hosts: ["x"], http: [delayed] })]).v, "IST0002");
  const patched = (applyTo: string, operation: string, priority = 0) => {
    const type = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
    const value = applyTo === "HTTP_FILTER" ? { name: "f", typed_config: { "@type": type } } : { name: "f" };
    const patch = { operation, value };
    return codes([
      {
        ...object("EnvoyFilter", "f", { priority, configPatches: [{ applyTo, patch }] }),
        apiVersion: "networking.istio.io/v1alpha3",
      },
    ]).f;
  };
  assert.equal(patched("HTTP_FILTER", "INSERT_BEFORE"), "IST0151");
  assert.equal(patched("HTTP_FILTER", "INSERT_BEFORE", 10), undefined);
  assert.equal(patched("CLUSTER", "REPLACE"), "IST0152");
  assert.equal(patched("HTTP_ROUTE", "ADD"), "IST0153");
  assert.equal(patched("HTTP_ROUTE", "REMOVE"), "IST0154");
});

test("problems of checks are messages, and objects hear only what they want to", () => {
  const problem = (severity: "error" | "warning", message: string): ObjectProblem => ({
    object: "VirtualService/shop/v",
    field: "spec",
    message,
    severity,
    origin: undefined,
  });
  const problems = [
    problem("error", "needs hosts"),
    problem("warning", "is odd"),
    problem("warning", "is never reached: spec.http[0] takes everything"),
    problem("warning", "has no effect: an earlier match is the same"),
  ];
  assert.equal(codes([], problems).v, "IST0106 IST0130 IST0133 IST0131");
  const routes = (suppressed: string) =>
    object(
      "VirtualService",
      "v",
      { hosts: ["x"], http: [routeTo({ host: "gone" })] },
      { annotations: { "galley.istio.io/analyze-suppress": suppressed } },
    );
  assert.equal(codes([routes("IST0101, IST0109")]).v, undefined);
  assert.equal(codes([routes("*")]).v, undefined);
  assert.equal(codes([routes("IST0109")]).v, "IST0101");
});

test("messages have Istio's levels and pages", () => {
  assert.deepEqual([levelOf("IST0101"), levelOf("IST0131")], ["ERROR", "INFO"]);
  assert.equal(documentationUrl("IST0101"), "https://istio.io/v1.29/docs/reference/config/analysis/ist0101/");
});
