/** What a gateway must not expose: classes of holes that meshes had. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_FEATURES } from "#model/features.ts";
import { memorySource } from "#sources/memory.ts";
import { planSecret, secretsView } from "#translate/secrets/plan.ts";
import { selfSigned } from "../support/certificates.ts";
import { meshOf, proxyOf } from "../support/mesh.ts";
import { object, service, workload } from "../support/objects.ts";
import { translated } from "../support/translated.ts";
import { simulate } from "./call.ts";

const ROUTER = proxyOf({ type: "router", ip: "10.9.0.1", namespace: "istio-system", labels: { istio: "eastwest" } });
const EASTWEST = object("Gateway", "istio-system/eastwest", {
  selector: { istio: "eastwest" },
  servers: [
    {
      port: { number: 15443, name: "tls", protocol: "TLS" },
      tls: { mode: "AUTO_PASSTHROUGH" },
      hosts: ["*.default.svc.cluster.local"],
    },
  ],
});
const PORT = { name: "http", port: 80 };
const hidden = service("default/hidden", PORT).replace(
  '"name":"hidden"',
  '"annotations":{"networking.istio.io/exportTo":"."},"name":"hidden"',
);
const MESH =
  EASTWEST +
  service("default/web", PORT) +
  workload("default/web-1", "10.1.0.1", { labels: { app: "web", "security.istio.io/tlsMode": "istio" } }) +
  workload("default/web-2", "10.1.0.2", { labels: { app: "web", "security.istio.io/tlsMode": "disabled" } }) +
  hidden +
  service("prod/elsewhere", PORT) +
  object("ServiceEntry", "default/outside", {
    hosts: ["outside.default.svc.cluster.local"],
    location: "MESH_EXTERNAL",
    resolution: "DNS",
    ports: [{ number: 80, name: "http", protocol: "HTTP" }],
  });
const host = (name: string) => `${name}.svc.cluster.local`;

/** The cluster that a connection with this server name reaches from outside. */
function reached(sni: string, tls: "tls" | "mtls", alpn?: string): string | undefined {
  const { listeners, routes } = translated(meshOf(MESH), ROUTER);
  const call = { address: "10.9.0.1", port: 15443, protocol: "tcp", host: "", path: "/", isInbound: false } as const;
  const from = { tls, sni, meshCertificate: "default", ...(alpn !== undefined && { alpn }) };
  return simulate({ listeners: [...listeners.values()], routes }, { ...call, ...from }).clusterMatched;
}

test("CVE-2021-31921: a gateway that passes TLS on leads proxies of the mesh to exported services of the mesh alone", () => {
  const web = `outbound_.80_._.${host("web.default")}`;
  assert.equal(reached(web, "mtls", "istio"), web);
  for (const alpn of [undefined, "h2", "http/1.1"]) {
    assert.equal(reached(web, "tls", alpn), undefined, `a client with ${alpn ?? "no"} protocol is not of the mesh`);
  }
  const others = ["hidden.default", "elsewhere.prod", "outside.default", "kubernetes.default"].map(host);
  for (const name of [
    ...others.map((other) => `outbound_.80_._.${other}`),
    host("web.default"),
    "",
    "*",
    "example.com",
  ]) {
    assert.equal(reached(name, "mtls", "istio"), undefined, name);
  }
  assert.equal(reached(`outbound_.443_._.${host("web.default")}`, "mtls", "istio"), undefined);
});

test("CVE-2021-31921: it leads to endpoints that end mutual TLS themselves, and to no others", () => {
  const { clusters, endpoints } = translated(meshOf(MESH), ROUTER);
  const passed = [...clusters.keys()].filter((name) => name.startsWith("outbound_."));
  assert.deepEqual(
    passed.filter((name) => /hidden|outside/.test(name)),
    [],
  );
  const web = endpoints(`outbound_.80_._.${host("web.default")}`);
  assert.equal(web.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints).length, 1);
});

test("gateway-tls-ref-grant-order: no grant, in whatever order, gives a gateway the key of another namespace", () => {
  const { certificate, key } = selfSigned("web.example.com");
  const secret = `${JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name: "tls", namespace: "prod" }, stringData: { cert: certificate, key } })}\n---\n`;
  const grant = (name: string, from: object, to: object) =>
    `${JSON.stringify({ apiVersion: "gateway.networking.k8s.io/v1beta1", kind: "ReferenceGrant", metadata: { name, namespace: "prod" }, spec: { from: [from], to: [to] } })}\n---\n`;
  const gateway = { group: "gateway.networking.k8s.io", kind: "Gateway", namespace: "istio-system" };
  const grants = [
    grant("one", gateway, { group: "", kind: "Secret", name: "other" }),
    grant("all", gateway, { group: "", kind: "Secret" }),
  ];
  for (const order of [grants, grants.toReversed()]) {
    const snapshot = memorySource({
      files: { "a.yaml": order.join("") + secret },
      features: DEFAULT_FEATURES,
    }).current();
    const verified = { namespace: "istio-system", serviceAccount: "gateway" };
    const view = secretsView({ ...ROUTER, verified }, snapshot.mesh);
    assert.ok(view);
    // Grants have no effect yet: keys of a Secret are for proxies of its own namespace.
    assert.equal(planSecret(snapshot, view, "kubernetes://prod/tls"), undefined);
    const own = secretsView({ ...ROUTER, verified: { ...verified, namespace: "prod" } }, snapshot.mesh);
    assert.ok(own && planSecret(snapshot, own, "kubernetes://prod/tls"));
  }
});
