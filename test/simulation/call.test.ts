/** What the simulation of calls itself does; Istio's own calls are run by the conformance group. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { meshOf, proxyOf } from "../support/mesh.ts";
import { object, service, workload } from "../support/objects.ts";
import { translated } from "../support/translated.ts";
import { type Call, simulate } from "./call.ts";
import { matchingRoute, matchingVirtualHost } from "./http-match.ts";

const CALL: Call = {
  address: "10.96.0.1",
  port: 80,
  protocol: "http",
  tls: "plaintext",
  sni: "",
  host: "web",
  path: "/",
  isInbound: false,
  meshCertificate: "default",
};
const MESH =
  service("web", { name: "http", port: 80 }) +
  workload("web-1", "10.1.0.1") +
  object("PeerAuthentication", "strict", { mtls: { mode: "STRICT" } });

function called(call: Partial<Call>, ip = "10.9.0.1") {
  const { listeners, routes } = translated(meshOf(MESH), proxyOf({ ip }));
  return simulate({ listeners: [...listeners.values()], routes }, { ...CALL, ...call });
}

test("a request goes by listener, virtual host and route to a cluster", () => {
  assert.deepEqual(called({}), {
    listenerMatched: "0.0.0.0_80",
    routeConfigMatched: "80",
    virtualHostMatched: "web.default.svc.cluster.local:80",
    routeMatched: "default",
    clusterMatched: "outbound|80||web.default.svc.cluster.local",
  });
  assert.equal(called({ port: 99 }).clusterMatched, "PassthroughCluster");
  assert.equal(called({ protocol: "tcp" }).clusterMatched, "PassthroughCluster");
});

test("only the mesh's own TLS enters where it is demanded", () => {
  const inbound = { isInbound: true, address: "10.1.0.1" };
  assert.equal(called({ ...inbound, tls: "mtls" }, "10.1.0.1").clusterMatched, "inbound|80||");
  assert.equal(called(inbound, "10.1.0.1").error, "no filter chains matched");
  assert.equal(called({ ...inbound, tls: "tls", alpn: "istio" }, "10.1.0.1").error, "invalid mTLS");
});

test("of virtual hosts the name itself wins, then the longest wildcard", () => {
  const config = create(RouteConfigurationSchema, {
    virtualHosts: ["*", "*.com", "*.a.com", "x.*", "x.a.com"].map((domain) => ({ name: domain, domains: [domain] })),
  });
  const found = ["x.a.com", "y.a.com", "b.com", "x.org", "y.org"].map(
    (host) => matchingVirtualHost(config, host)?.name,
  );
  assert.deepEqual(found, ["x.a.com", "*.a.com", "*.com", "x.*", "*"]);
});

test("of routes the first whose path fits wins", () => {
  const paths = [
    { case: "path" as const, value: "/a" },
    { case: "safeRegex" as const, value: { regex: "/b[0-9]" } },
    { case: "prefix" as const, value: "/b" },
  ];
  const routes = paths.map((pathSpecifier) => ({ name: pathSpecifier.case, match: { pathSpecifier } }));
  const config = create(RouteConfigurationSchema, { virtualHosts: [{ name: "any", domains: ["*"], routes }] });
  const [host] = config.virtualHosts;
  assert.ok(host);
  const found = ["/a", "/b1", "/b12", "/c"].map((path) => matchingRoute(host, path)?.name);
  assert.deepEqual(found, ["path", "safeRegex", "prefix", undefined]);
});
