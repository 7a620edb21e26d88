import assert from "node:assert/strict";
import { test } from "node:test";
import type { Snapshot } from "#model/snapshot.ts";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { viewsOf } from "../views/views.ts";
import { publicPart } from "./public-part.ts";

const meta = (name: string, namespace: string) => `metadata: {name: ${name}, namespace: ${namespace}}`;
const networking = (kind: string, name: string, spec: string, namespace = "bank") =>
  `{apiVersion: networking.istio.io/v1, kind: ${kind}, ${meta(name, namespace)}, spec: {${spec}}}`;
const security = (kind: string, name: string, spec: string, namespace = "bank") =>
  `{apiVersion: security.istio.io/v1, kind: ${kind}, ${meta(name, namespace)}, spec: {${spec}}}`;
const entry = (name: string, exportTo: string) =>
  networking(
    "ServiceEntry",
    name,
    `hosts: [${name}.example], exportTo: [${exportTo}], ports: [{number: 80, name: http}]`,
  );
const of = (objects: readonly string[], options = {}) => publicPart(meshOf(objects.join("\n---\n"), options));
const names = (objects: readonly { readonly metadata: { readonly name: string } }[]) =>
  objects.map(({ metadata }) => metadata.name);
const hosts = ({ services }: Snapshot) => services.map(({ hostname }) => hostname).toSorted();

test("publicPart() has the services, routes and rules that are exported to everybody", () => {
  const objects = ["'*'", ".", "shop", "'~'", ""].map((exportTo, i) => entry(`s${i}`, exportTo));
  const route = (name: string, rest: string) =>
    networking("VirtualService", name, `hosts: [a.example], http: [{route: [{destination: {host: a}}]}], ${rest}`);
  const rule = (name: string, rest: string) => networking("DestinationRule", name, `host: a.example, ${rest}`);
  const snapshot = of([
    ...objects,
    ...[route("open", ""), route("own", "exportTo: [.]"), rule("open", ""), rule("own", "exportTo: [.]")],
    rule("selecting", "workloadSelector: {matchLabels: {a: b}}"),
  ]);
  assert.deepEqual(hosts(snapshot), ["s0.example", "s4.example"]);
  assert.deepEqual([names(snapshot.virtualServices), names(snapshot.destinationRules)], [["open"], ["open"]]);
});

test("publicPart() follows what the mesh exports by default", () => {
  const objects = [entry("open", "'*'"), entry("unset", "")];
  assert.deepEqual(hosts(of(objects, { mesh: { defaultServiceExportTo: ["."] } })), ["open.example"]);
});

test("publicPart() has what the root namespace lays down for all workloads", () => {
  const sidecar = "egress: [{hosts: ['./*']}]";
  const snapshot = of([
    networking("Sidecar", "all", sidecar, "istio-system"),
    networking("Sidecar", "some", `workloadSelector: {labels: {a: b}}, ${sidecar}`, "istio-system"),
    networking("Sidecar", "own", sidecar),
    security("RequestAuthentication", "all", "", "istio-system"),
    security("AuthorizationPolicy", "all", "action: DENY, rules: [{}]", "istio-system"),
  ]);
  assert.deepEqual(names(snapshot.sidecars), ["all"]);
  assert.deepEqual(names(snapshot.requestAuthentications), ["all"]);
  assert.deepEqual(names(snapshot.authorizationPolicies), ["all"]);
});

test("publicPart() denies all requests to the workloads of a policy that it leaves out and that could deny some", () => {
  const rules = "rules: [{to: [{operation: {paths: [/secret]}}]}]";
  const selector = "selector: {matchLabels: {app: vault}}";
  const policies = [
    security("AuthorizationPolicy", "a", `action: DENY, ${selector}, ${rules}`),
    security("AuthorizationPolicy", "a", `action: ALLOW, ${selector}, ${rules}`),
    security("RequestAuthentication", "a", `${selector}, jwtRules: [{issuer: secret, jwks: '{"keys":[]}'}]`),
    security("PeerAuthentication", "a", `${selector}, mtls: {mode: STRICT}`),
    security("PeerAuthentication", "a", `${selector}, portLevelMtls: {80: {mode: STRICT}}`),
  ];
  for (const policy of policies) {
    const snapshot = of([policy]);
    const specs = (labels: Readonly<Record<string, string>>, namespace = "bank") =>
      viewsOf(snapshot, proxyOf({ namespace, labels })).inbound?.authorization.map(({ spec }) => spec);
    const denial = { selector: { matchLabels: { app: "vault" } }, action: "DENY", rules: [{}] };
    assert.deepEqual(JSON.parse(JSON.stringify(specs({ app: "vault" }))), [denial], policy);
    assert.deepEqual([specs({ app: "other" }), specs({ app: "vault" }, "shop")], [[], []]);
    assert.equal(
      viewsOf(snapshot, proxyOf({ namespace: "bank", labels: { app: "vault" } })).inbound?.mtls.mode,
      "PERMISSIVE",
    );
  }
});

test("publicPart() denies nothing for a policy that could deny nothing", () => {
  const objects = [
    security("AuthorizationPolicy", "a", "action: AUDIT, rules: [{}]"),
    security("PeerAuthentication", "a", "mtls: {mode: DISABLE}"),
  ];
  assert.deepEqual(of(objects).authorizationPolicies, []);
});

test("publicPart() has Gateways of all namespaces, unless the mesh keeps them to their own", () => {
  const gateway = networking(
    "Gateway",
    "gw",
    "servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]",
  );
  assert.deepEqual(names(of([gateway]).gateways), ["gw"]);
  assert.deepEqual(of([gateway], { features: { gatewaysOfNamespace: true } }).gateways, []);
});

test("publicPart() is the whole mesh where nothing is private, so that all proxies share their views", () => {
  const snapshot = meshOf(
    [entry("open", "'*'"), security("AuthorizationPolicy", "all", "", "istio-system")].join("\n---\n"),
  );
  assert.equal(publicPart(snapshot), snapshot);
});
