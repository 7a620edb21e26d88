import assert from "node:assert/strict";
import { test } from "node:test";
import type { Route, VirtualHost } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import type { RouteConfiguration } from "#gen/envoy/config/route/v3/route_pb.ts";
import { type MeshOptions, meshOf, type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { object, service } from "../../../test/support/objects.ts";
import { translated } from "../../../test/support/translated.ts";

type Options = MeshOptions & { readonly proxy?: ProxyOptions; readonly name?: string };
const routesOf = (yaml: string, options: Options = {}) =>
  translated(meshOf(yaml, options), proxyOf({ ip: "10.9.0.1", ...options.proxy })).route(options.name ?? "80");
const WEB = service("web", { name: "http", port: 80 });
const API = service("api", { name: "http", port: 80 });
const to = (host: string, more: object = {}) => ({ destination: { host, ...more } });
const virtualService = (name: string, spec: object, metadata: object = {}) =>
  object("VirtualService", name, { hosts: [name], ...spec }, metadata);
const webRoutes = (...http: object[]) => virtualService("web", { http });

function hostOf({ virtualHosts }: RouteConfiguration, domain: string): VirtualHost {
  const found = virtualHosts.find(({ domains }) => domains.includes(domain));
  assert.ok(found, `no virtual host for ${domain}`);
  return found;
}

/** Where a route leads: a cluster, `a 80, b 20`, or what it answers. */
function target({ action }: Route): string {
  if (action.case !== "route") return `${action.case}`;
  const { clusterSpecifier } = action.value;
  if (clusterSpecifier.case !== "weightedClusters") return String(clusterSpecifier.value);
  return clusterSpecifier.value.clusters.map(({ name, weight }) => `${name} ${weight}`).join(", ");
}
const targets = (...args: Parameters<typeof routesOf>) => hostOf(routesOf(...args), "web").routes.map(target);
const only = (...http: object[]) => hostOf(routesOf(WEB + webRoutes(...http)), "web").routes;

test("a host that several entries declare is called by the addresses of the last of them that has the port", () => {
  const entry = (name: string, address: string, number: number) =>
    object("ServiceEntry", name, {
      hosts: ["ext.example.com"],
      addresses: [address],
      ports: [{ number, name: "http", protocol: "HTTP" }],
      resolution: "DNS",
    });
  const routes = routesOf(entry("a", "10.5.0.1", 80) + entry("b", "10.5.0.2", 80) + entry("c", "10.5.0.3", 81));
  assert.equal(hostOf(routes, "10.5.0.2"), hostOf(routes, "ext.example.com"));
});

test("a service that has a port for UDP too gets the requests to it", () => {
  const web = service("web", { name: "quic", port: 80, protocol: "UDP" }, { name: "http", port: 80 });
  assert.deepEqual(targets(web), ["outbound|80||web.default.svc.cluster.local"]);
});

test("a service without a virtual service gets all requests to it", () => {
  const host = hostOf(routesOf(WEB), "web");
  assert.equal(host.name, "web.default.svc.cluster.local:80");
  assert.deepEqual(host.routes.map(target), ["outbound|80||web.default.svc.cluster.local"]);
  assert.equal(host.includeRequestAttemptCount, true);
});

test("hosts that no service has are passed on, or refused", () => {
  const [route] = hostOf(routesOf(WEB), "*").routes;
  assert.equal(route && target(route), "PassthroughCluster");
  const mesh = { outboundTrafficPolicy: { mode: "REGISTRY_ONLY" } };
  const [refused] = hostOf(routesOf(WEB, { mesh }), "*").routes;
  assert.deepEqual(refused?.action.case === "directResponse" && refused.action.value.status, 502);
});

test("routes end with the first that takes every request", () => {
  const routes = [
    { match: [{ uri: { prefix: "/api" } }], route: [to("api")] },
    { route: [to("web")] },
    { route: [to("x")] },
  ];
  assert.deepEqual(targets(WEB + API + webRoutes(...routes)), [
    "outbound|80||api.default.svc.cluster.local",
    "outbound|80||web.default.svc.cluster.local",
  ]);
});

test("each condition of a route is a route", () => {
  const match = [{ uri: { exact: "/a" } }, { headers: { user: { exact: "jason" } } }];
  assert.equal(only({ match, route: [to("web")] }).length, 2);
});

test("conditions on the caller, the port and the gateway are decided before any request", () => {
  const when = (match: object) => ({ match: [match], route: [to("web")] });
  const first = (match: object, proxy: ProxyOptions = {}) =>
    targets(WEB + webRoutes(when(match), { route: [to("other")] }), { proxy })[0]?.includes("web");
  assert.equal(first({ sourceLabels: { app: "a" } }, { labels: { app: "a" } }), true);
  assert.equal(first({ sourceLabels: { app: "a" } }, { labels: { app: "b" } }), false);
  assert.equal(first({ sourceNamespace: "default" }), true);
  assert.equal(first({ sourceNamespace: "other" }), false);
  assert.equal(first({ port: 80 }), true);
  assert.equal(first({ port: 81 }), false);
  assert.equal(first({ gateways: ["mesh"] }), true);
  assert.equal(first({ gateways: ["gate"] }), false);
});

test("weights of zero are left out; a single destination has none", () => {
  const weighted = (...weights: number[]) =>
    only({ route: weights.map((weight, i) => ({ ...to("web", { subset: `v${i}` }), weight })) }).map(target)[0];
  assert.equal(weighted(0), "outbound|80|v0|web.default.svc.cluster.local");
  assert.equal(
    weighted(80, 0, 20),
    "outbound|80|v0|web.default.svc.cluster.local 80, outbound|80|v2|web.default.svc.cluster.local 20",
  );
});

test("a destination nobody knows keeps its name: its requests fail, others do not", () => {
  assert.deepEqual(targets(WEB + webRoutes({ route: [to("gone", { subset: "v9" })] })), [
    "outbound|80|v9|gone.default.svc.cluster.local",
  ]);
  assert.equal(routesOf(WEB + webRoutes({ route: [to("gone")] })).validateClusters, false);
});

test("no name is there twice, whoever claims it", () => {
  const yaml =
    WEB +
    service("other/web", { name: "http", port: 80 }) +
    object("ServiceEntry", "e", {
      hosts: ["web", "WEB.default"],
      ports: [{ number: 80, name: "http", protocol: "HTTP" }],
      resolution: "DNS",
    }) +
    virtualService("a", { hosts: ["web.example.com", "Web.example.com"], http: [{ route: [to("web")] }] }) +
    virtualService("b", { hosts: ["web.example.com"], http: [{ route: [to("api")] }] });
  const { virtualHosts } = routesOf(yaml);
  const domains = virtualHosts.flatMap((host) => host.domains.map((domain) => domain.toLowerCase()));
  assert.deepEqual(domains, [...new Set(domains)]);
  assert.ok(virtualHosts.every((host) => host.domains.length > 0));
});

test("a virtual service for a wildcard speaks for the services under it that no other speaks for", () => {
  const yaml =
    WEB +
    API +
    virtualService("all", {
      hosts: ["*.default.svc.cluster.local"],
      http: [{ route: [to("web", { subset: "all" })] }],
    }) +
    virtualService("web", { http: [{ route: [to("web", { subset: "own" })] }] });
  const routes = routesOf(yaml);
  assert.match(String(hostOf(routes, "web").routes.map(target)), /\|own\|/);
  assert.match(String(hostOf(routes, "api").routes.map(target)), /\|all\|/);
});

test("timeouts, retries and rewrites of a route", () => {
  const [route] = only({
    route: [to("web")],
    timeout: "2s",
    retries: { attempts: 0 },
    rewrite: { uri: "/new", authority: "b" },
  });
  assert.equal(route?.action.case, "route");
  const action = route?.action.case === "route" ? route.action.value : undefined;
  assert.equal(action?.timeout?.seconds, 2n);
  assert.equal(action?.retryPolicy, undefined);
  assert.equal(action?.prefixRewrite, "/new");
  assert.deepEqual(action?.hostRewriteSpecifier, { case: "hostRewriteLiteral", value: "b" });
});

test("the usual port of a scheme is not written into a redirect", () => {
  const port = (redirect: object) => {
    const [route] = only({ redirect: { uri: "/", ...redirect } });
    return route?.action.case === "redirect" ? route.action.value.portRedirect : undefined;
  };
  assert.equal(port({ port: 80 }), 0);
  assert.equal(port({ port: 443, scheme: "https" }), 0);
  assert.equal(port({ port: 443 }), 443);
  assert.equal(port({ derivePort: "FROM_REQUEST_PORT", scheme: "https" }), 80);
});

test("copies are sent aside, none for zero percent", () => {
  const copies = (more: object) => {
    const [route] = only({ route: [to("web")], ...more });
    return route?.action.case === "route" ? route.action.value.requestMirrorPolicies.map(({ cluster }) => cluster) : [];
  };
  const copy = "outbound|80||api.default.svc.cluster.local";
  assert.deepEqual(copies({ mirror: { host: "api" } }), [copy]);
  assert.deepEqual(copies({ mirror: { host: "api" }, mirrorPercentage: { value: 0 } }), []);
  assert.deepEqual(copies({ mirrors: [to("api"), { ...to("api"), percentage: { value: 0 } }] }), [copy]);
});

test("a rule that balances by hash decides by the request", () => {
  const rule = (consistentHash: object) =>
    object("DestinationRule", "web", { host: "web", trafficPolicy: { loadBalancer: { consistentHash } } });
  const hashed = (consistentHash: object) => {
    const [route] = hostOf(routesOf(WEB + rule(consistentHash)), "web").routes;
    return route?.action.case === "route" ? route.action.value.hashPolicy[0]?.policySpecifier.case : undefined;
  };
  assert.equal(hashed({ httpHeaderName: "x" }), "header");
  assert.equal(hashed({ httpCookie: { name: "c", ttl: "1s" } }), "cookie");
  assert.equal(hashed({ useSourceIp: true }), "connectionProperties");
  assert.equal(hashed({ httpQueryParameterName: "q" }), "queryParameter");
});

test("destinations without weight beside others are not hashed", () => {
  const hash = { loadBalancer: { consistentHash: { httpHeaderName: "x" } } };
  const rule = object("DestinationRule", "web", { host: "web", trafficPolicy: hash });
  const hashes = (...weights: number[]) => {
    const route = weights.map((weight) => ({ ...to("web"), weight }));
    const spec = { hosts: ["web"], http: [{ route }] };
    const [made] = hostOf(routesOf(WEB + rule + object("VirtualService", "web", spec)), "web").routes;
    return made?.action.case === "route" ? made.action.value.hashPolicy.length : 0;
  };
  assert.equal(hashes(0), 1);
  assert.equal(hashes(1, 0), 1);
  assert.equal(hashes(1, 2), 2);
});

test("a port whose protocol is detected has routes of its own, for whatever host is asked", () => {
  const yaml = object("Service", "any", { clusterIP: "10.96.0.9", ports: [{ name: "any", port: 91 }] });
  const routes = routesOf(yaml, { name: "any.default.svc.cluster.local:91" });
  assert.deepEqual(
    routes.virtualHosts.map(({ domains }) => domains),
    [["*"]],
  );
});

const gateway = (hosts: string[], more: object = {}, name = "gate") =>
  object("Gateway", name, { servers: [{ port: { number: 80, name: "http", protocol: "HTTP" }, hosts, ...more }] });
const atGateway = (yaml: string) => routesOf(yaml, { proxy: { type: "router" }, name: "http.80" });
const bound = (name: string, hosts: string[], more: object = {}) =>
  virtualService(name, { hosts, gateways: ["gate"], http: [{ route: [to("web")] }], ...more });

test("a gateway has the hosts that both it and a virtual service name", () => {
  const yaml = WEB + gateway(["*.example.com"]) + bound("a", ["a.example.com", "b.example.org"]);
  assert.deepEqual(
    atGateway(yaml).virtualHosts.flatMap(({ domains }) => domains),
    ["a.example.com"],
  );
});

test("a gateway without virtual services answers nothing", () => {
  const { virtualHosts } = atGateway(gateway(["*"]));
  assert.deepEqual(
    virtualHosts.map(({ domains, routes }) => [domains, routes]),
    [[["*"], []]],
  );
});

test("virtual services of one host at a gateway are joined, what takes every request comes last", () => {
  const api = { http: [{ match: [{ uri: { prefix: "/api" } }], route: [to("api")] }] };
  const yaml = WEB + API + gateway(["*"]) + bound("a", ["a.com"]) + bound("b", ["a.com"], api);
  assert.deepEqual(hostOf(atGateway(yaml), "a.com").routes.map(target), [
    "outbound|80||api.default.svc.cluster.local",
    "outbound|80||web.default.svc.cluster.local",
  ]);
});

test("hosts with the same routes are one virtual host", () => {
  const { virtualHosts } = atGateway(WEB + gateway(["*"]) + bound("a", ["a.com", "b.com"]));
  assert.deepEqual(
    virtualHosts.map(({ domains }) => [...domains].sort()),
    [["a.com", "b.com"]],
  );
});

test("a server can send its callers to TLS, also where nothing is bound to it", () => {
  const { virtualHosts } = atGateway(gateway(["a.com"], { tls: { httpsRedirect: true } }));
  assert.deepEqual(
    virtualHosts.map(({ domains, requireTls }) => [domains, requireTls]),
    [[["a.com"], 2]],
  );
});

test("a host of a gateway can be bound to a namespace", () => {
  const yaml =
    WEB +
    gateway(["other/a.com", "./b.com"]) +
    bound("here", ["a.com", "b.com"]) +
    virtualService("other/there", { hosts: ["a.com"], gateways: ["default/gate"], http: [{ route: [to("x")] }] });
  const routes = atGateway(yaml);
  assert.deepEqual(hostOf(routes, "a.com").routes.map(target), ["outbound|80||x.other.svc.cluster.local"]);
  assert.deepEqual(hostOf(routes, "b.com").routes.map(target), ["outbound|80||web.default.svc.cluster.local"]);
});

test("a destination without a port means the only port of its service at a gateway, and the called one in the mesh", () => {
  const eighty = service("eighty", { name: "http", port: 8080 });
  const yaml = WEB + eighty + gateway(["*"]) + bound("a", ["a.com"], { http: [{ route: [to("eighty")] }] });
  assert.deepEqual(hostOf(atGateway(yaml), "a.com").routes.map(target), [
    "outbound|8080||eighty.default.svc.cluster.local",
  ]);
  assert.deepEqual(targets(WEB + eighty + webRoutes({ route: [to("eighty")] })), [
    "outbound|80||eighty.default.svc.cluster.local",
  ]);
});

test("an HTTP proxy knows services without a port by the first they have, if that is 80", () => {
  const namesOf = (...ports: object[]) => {
    const proxy = { metadata: { HTTP_PROXY_PORT: "15007" } };
    const { virtualHosts } = translated(meshOf(service("web", ...ports)), proxyOf(proxy)).route("http_proxy");
    return virtualHosts
      .flatMap(({ domains }) => domains)
      .filter((domain) => domain.startsWith("web:") || domain === "web");
  };
  assert.deepEqual(namesOf({ name: "http", port: 80 }, { name: "http-b", port: 90 }), ["web", "web:80", "web:90"]);
  assert.deepEqual(namesOf({ name: "http-b", port: 90 }, { name: "http", port: 80 }).sort(), ["web:80", "web:90"]);
});

test("an HTTP proxy knows services with routes of their own without a port by 80, if they have it", () => {
  const ports = [
    { name: "http-b", port: 90 },
    { name: "http", port: 80 },
  ];
  const yaml = service("web", ...ports) + webRoutes({ route: [to("web")] });
  const proxy = { metadata: { HTTP_PROXY_PORT: "15007" } };
  const { virtualHosts } = translated(meshOf(yaml), proxyOf(proxy)).route("http_proxy");
  const owner = virtualHosts.find(({ domains }) => domains.includes("web"))?.name;
  assert.equal(owner, "web.default.svc.cluster.local:80");
});

test("requests are spread by the rule of the host's service in the whole scope, through every listener of a Sidecar", () => {
  const declared = (namespace: string) =>
    object("ServiceEntry", `${namespace}/x`, {
      hosts: ["x.example.com"],
      ports: [{ number: 80, name: "http", protocol: "HTTP" }],
      resolution: "DNS",
    }) +
    object("DestinationRule", `${namespace}/x`, {
      host: "x.example.com",
      trafficPolicy: { loadBalancer: { consistentHash: { httpHeaderName: `x-${namespace}` } } },
    });
  const egress = [
    { port: { number: 7000, name: "own", protocol: "HTTP_PROXY" }, hosts: ["one/*"] },
    { hosts: ["two/*"] },
  ];
  const yaml = declared("one") + declared("two") + object("Sidecar", "default", { egress });
  const [route] = hostOf(routesOf(yaml), "x.example.com").routes;
  const [policy] = route?.action.case === "route" ? route.action.value.hashPolicy : [];
  assert.equal(policy?.policySpecifier.case === "header" && policy.policySpecifier.value.headerName, "x-one");
});
