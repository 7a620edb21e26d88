import assert from "node:assert/strict";
import { test } from "node:test";
import { type MeshOptions, meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import { translated } from "../../../test/support/translated.ts";

const ports = [{ number: 80, name: "http", protocol: "HTTP" }];
const entry = (name: string) => object("ServiceEntry", name, { hosts: [`${name}.com`], ports, resolution: "DNS" });
const to = (host: string) => ({ destination: { host } });
const SERVICES = ["web", "mirror", "tcp", "hidden", "authz", "keys", "other"].map(entry).join("");
const GATEWAY = object("Gateway", "gw", { selector: { istio: "in" }, servers: [{ port: ports[0], hosts: ["*"] }] });
const bound = (name: string, spec: object) =>
  object("VirtualService", name, { hosts: [`${name}.org`], gateways: ["gw"], ...spec });

function clusters(yaml: string, options: MeshOptions = {}): readonly string[] {
  const mesh = meshOf(SERVICES + GATEWAY + yaml, {
    ...options,
    features: { referencedClusters: true, ...options.features },
  });
  const router = proxyOf({ type: "router", labels: { istio: "in" }, namespace: "istio-system" });
  const names = [...translated(mesh, router).clusters.keys()].filter((name) => name.startsWith("outbound"));
  return names.map((name) => name.replace(/.*\|(.*)\.com$/, "$1")).sort();
}

test("a router gets the clusters of its routes, copies and connections, and no others", () => {
  const routes = bound("a", { http: [{ route: [to("web.com")], mirror: { host: "mirror.com" } }] });
  const connections = bound("b", { tcp: [{ route: [to("tcp.com")] }] });
  assert.deepEqual(clusters(""), []);
  assert.deepEqual(clusters(routes + connections), ["mirror", "tcp", "web"]);
});

test("routes count whoever may see them", () => {
  const routes = bound("a", { http: [{ route: [to("hidden.com")] }], exportTo: ["."] });
  assert.deepEqual(clusters(routes), ["hidden"]);
});

test("providers of the mesh, and issuers whose keys Envoy fetches, are reached", () => {
  const mesh = { extensionProviders: [{ name: "x", envoyExtAuthzHttp: { service: "default/authz.com", port: 80 } }] };
  const rule = { jwtRules: [{ issuer: "me", jwksUri: "http://keys.com/keys" }] };
  const issuer = object("RequestAuthentication", "jwt", rule);
  assert.deepEqual(clusters(issuer, { mesh }), ["authz"]);
  assert.deepEqual(clusters(issuer, { mesh, features: { keyFetching: "envoy" } }), ["authz", "keys"]);
});
