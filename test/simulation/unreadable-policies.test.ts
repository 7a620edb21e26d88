/** What proxies get in place of security objects that cannot be read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RBACSchema } from "#gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts";
import { HttpConnectionManagerSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { RBACSchema as TcpRbacSchema } from "#gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import { memorySource } from "#sources/memory.ts";
import { namespaceMode } from "#translate/policies/peer-authentication.ts";
import { generate } from "../conformance/generate.ts";
import { NO_ENVOY } from "../support/ads-envoy.ts";
import { acceptedByEnvoy, type EnvoyResources } from "../support/envoy.ts";
import { proxyOf } from "../support/mesh.ts";
import { object, service, workload } from "../support/objects.ts";
import { translated, unpacked } from "../support/translated.ts";

const WEB = proxyOf({ ip: "10.0.0.1", labels: { app: "web" } });
const OTHER = proxyOf({ ip: "10.0.0.2", labels: { app: "other" } });
const ROUTER = proxyOf({ ip: "10.0.0.3", type: "router", labels: { istio: "ingress" } });
const MESH =
  service("web", { name: "http", port: 80 }, { name: "tcp", port: 81 }, { name: "any", port: 82 }) +
  workload("web", WEB.addresses[0] ?? "") +
  service("other", { name: "http", port: 80 }) +
  workload("other", OTHER.addresses[0] ?? "") +
  object("Gateway", "ingress", {
    selector: { istio: "ingress" },
    servers: [
      { port: { number: 80, name: "http", protocol: "HTTP" }, hosts: ["*"] },
      { port: { number: 443, name: "tls", protocol: "TLS" }, tls: { mode: "PASSTHROUGH" }, hosts: ["*"] },
    ],
  }) +
  object("VirtualService", "tls", {
    hosts: ["a.com"],
    gateways: ["ingress"],
    tls: [{ match: [{ sniHosts: ["a.com"] }], route: [{ destination: { host: "web", port: { number: 81 } } }] }],
  });
const SELECTOR = { selector: { matchLabels: { app: "web" } } };
const NAME = "ns[default]-policy[broken]-unreadable";

function meshWith(broken: string, unreadableDeny = true) {
  return memorySource({
    files: { "a.yaml": MESH, "b.yaml": broken },
    features: { ...DEFAULT_FEATURES, unreadableDeny },
  });
}

/** For each chain of a listener what it takes, and whether a filter of HTTP or TCP denies everything by that name. */
function denials(broken: string, proxy: MeshProxy, listener: string, unreadableDeny = true): Record<string, string> {
  const { filterChains } = translated(meshWith(broken, unreadableDeny).current(), proxy).listener(listener);
  const seen = filterChains.map(({ filterChainMatch: match, filters }): [string, string] => {
    const rules = filters.flatMap(({ name, configType }) => {
      if (configType.case !== "typedConfig") return [];
      if (name === "envoy.filters.network.rbac") return [unpacked(TcpRbacSchema, configType.value).rules];
      if (name !== "envoy.filters.network.http_connection_manager") return [];
      return unpacked(HttpConnectionManagerSchema, configType.value).httpFilters.flatMap((filter) =>
        filter.name === "envoy.filters.http.rbac" && filter.configType.case === "typedConfig"
          ? [unpacked(RBACSchema, filter.configType.value).rules]
          : [],
      );
    });
    const names = rules.flatMap((rule) => Object.keys(rule?.policies ?? {}));
    const kind = filters.some(({ name }) => name.endsWith("http_connection_manager")) ? "http" : "tcp";
    return [`${match?.destinationPort ?? 0} ${match?.transportProtocol || "any"} ${kind}`, names.join()];
  });
  return Object.fromEntries(seen);
}

test("a policy that cannot be read denies requests and connections to what it selects", () => {
  const broken = object("AuthorizationPolicy", "broken", { ...SELECTOR, action: "DENIED" });
  const found = denials(broken, WEB, "virtualInbound");
  const own = Object.entries(found).filter(([chain]) => !chain.startsWith("15006"));
  assert.ok(own.length > 5);
  for (const [chain, name] of own) assert.equal(name, NAME, chain);
  assert.ok(!Object.values(denials(broken, OTHER, "virtualInbound")).includes(NAME));
  assert.ok(!Object.values(denials(broken, ROUTER, "0.0.0.0_80")).includes(NAME));
  assert.ok(!Object.values(denials(broken, WEB, "virtualInbound", false)).includes(NAME), "it may be ignored");
});

test("without a readable selector it denies to all of the namespace, gateways included", () => {
  const broken = object("AuthorizationPolicy", "broken", { selector: 5, rules: [{}] });
  assert.ok(Object.values(denials(broken, OTHER, "virtualInbound")).includes(NAME));
  assert.deepEqual(denials(broken, ROUTER, "0.0.0.0_80"), { "0 any http": NAME });
  assert.deepEqual(Object.values(denials(broken, ROUTER, "0.0.0.0_443")), [NAME]);
  const elsewhere = proxyOf({ ip: "10.0.0.4", namespace: "elsewhere" });
  assert.ok(!Object.values(denials(broken, elsewhere, "virtualInbound")).includes(NAME));
});

test("in the root namespace it denies to the mesh", () => {
  const broken = object("AuthorizationPolicy", "istio-system/broken", { rules: 5 });
  const elsewhere = proxyOf({ ip: "10.0.0.4", namespace: "elsewhere" });
  assert.ok(
    Object.values(denials(broken, elsewhere, "virtualInbound")).includes(NAME.replace("default", "istio-system")),
  );
});

test("a request authentication that cannot be read denies requests, and has no say about connections", () => {
  const found = denials(
    object("RequestAuthentication", "broken", { jwtRules: [{ issuer: "" }] }),
    WEB,
    "virtualInbound",
  );
  const expected = ([chain]: [string, string]) => (chain.endsWith("http") ? NAME : "");
  for (const entry of Object.entries(found)) assert.equal(entry[1], expected(entry), entry[0]);
});

test("a peer authentication that cannot be read is STRICT, and refuses plain HTTP by name", () => {
  const broken = object("PeerAuthentication", "broken", { ...SELECTOR, mtls: { mode: "STRICKT" } });
  assert.deepEqual(denials(broken, WEB, "virtualInbound"), {
    "15006 any tcp": "",
    "0 tls http": "",
    "0 tls tcp": "",
    "0 raw_buffer http": NAME,
    "80 tls http": "",
    "80 raw_buffer http": NAME,
    "81 tls tcp": "",
    "82 tls http": "",
    "82 tls tcp": "",
    "82 raw_buffer http": NAME,
  });
  const namespaceWide = object("PeerAuthentication", "broken", { mtls: 5 });
  assert.equal(namespaceMode(meshWith(namespaceWide).current(), "default"), "STRICT");
  assert.ok(!Object.values(denials(namespaceWide, ROUTER, "0.0.0.0_80")).includes(NAME), "gateways have none");
});

test("what is readable and narrower than a peer authentication that cannot be read still decides", () => {
  const wide = object("PeerAuthentication", "broken", { mtls: 5 });
  const narrow = (spec: object) => object("PeerAuthentication", "narrow", { ...SELECTOR, ...spec });
  assert.ok(
    !Object.values(denials(wide + narrow({ mtls: { mode: "PERMISSIVE" } }), WEB, "virtualInbound")).includes(NAME),
  );
  const found = denials(wide + narrow({ portLevelMtls: { 80: { mode: "DISABLE" } } }), WEB, "virtualInbound");
  assert.equal(found["80 raw_buffer http"], "");
  assert.equal(found["0 raw_buffer http"], NAME);
  const anybody = object("PeerAuthentication", "broken", { selector: 5 });
  const beaten = denials(anybody + narrow({ mtls: { mode: "DISABLE" } }), WEB, "virtualInbound");
  assert.equal(beaten["80 raw_buffer http"], NAME);
});

test("Envoy accepts all of that", { skip: NO_ENVOY }, async () => {
  const broken =
    object("AuthorizationPolicy", "a", { rules: 5 }) +
    object("RequestAuthentication", "r", { jwtRules: 5 }) +
    object("PeerAuthentication", "p", { mtls: 5 });
  const snapshot = meshWith(broken).current();
  const resourcesOf = (proxy: MeshProxy): EnvoyResources => {
    const { clusters, listeners, routes } = generate(snapshot, proxy);
    return {
      clusters: [...clusters.values()],
      listeners: [...listeners.values()],
      routes: [...routes.values()],
      endpoints: [],
    };
  };
  await acceptedByEnvoy(
    new Map([
      ["web", resourcesOf(WEB)],
      ["router", resourcesOf(ROUTER)],
    ]),
  );
});
