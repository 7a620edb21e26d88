import assert from "node:assert/strict";
import { test } from "node:test";
import { objectKey } from "#config/schema/config-object.ts";
import { type MeshOptions, meshOf } from "../../../test/support/mesh.ts";
import { object, service } from "../../../test/support/objects.ts";
import { destinationRuleFor, selectingRules } from "./destination-rules.ts";

const WEB = service("prod/web", { name: "http", port: 80 });
const HOST = "web.prod.svc.cluster.local";
const rule = (where: string, spec: object = {}, createdAt = "2024-01-01T00:00:00Z") =>
  object("DestinationRule", where, { host: HOST, ...spec }, { creationTimestamp: createdAt });

function ruleSeenFrom(namespace: string, yaml: string, options: MeshOptions & { readonly selected?: string[] } = {}) {
  const mesh = meshOf(WEB + yaml, options);
  const [web] = mesh.services;
  assert.ok(web);
  return destinationRuleFor(mesh, web, { namespace, selectedRules: options.selected ?? [] });
}
const nameSeenFrom = (...args: Parameters<typeof ruleSeenFrom>) => {
  const metadata = ruleSeenFrom(...args)?.metadata;
  return metadata && `${metadata.namespace}/${metadata.name}`;
};

test("the caller's namespace comes first, then the service's, then the root namespace", () => {
  const root = rule("istio-system/root");
  const server = rule("prod/server");
  const client = rule("client/client");
  assert.equal(nameSeenFrom("client", root + server + client), "client/client");
  assert.equal(nameSeenFrom("client", root + server), "prod/server");
  assert.equal(nameSeenFrom("client", root), "istio-system/root");
  assert.equal(nameSeenFrom("client", rule("elsewhere/other")), undefined);
});

test("the most specific host wins", () => {
  const wide = rule("prod/wide", { host: "*.prod.svc.cluster.local" });
  const widest = rule("prod/widest", { host: "*" });
  assert.equal(nameSeenFrom("a", widest + wide + rule("prod/exact")), "prod/exact");
  assert.equal(nameSeenFrom("a", widest + wide), "prod/wide");
  assert.equal(nameSeenFrom("a", widest), "prod/widest");
});

test("short names are completed by the rule's own namespace", () => {
  assert.equal(nameSeenFrom("prod", rule("prod/short", { host: "web" })), "prod/short");
  assert.equal(nameSeenFrom("other", rule("other/short", { host: "web" })), undefined);
});

test("a private rule does not apply to others", () => {
  const hidden = rule("prod/private", { exportTo: ["."] });
  assert.equal(nameSeenFrom("prod", hidden), "prod/private");
  assert.equal(nameSeenFrom("client", hidden), undefined);
  assert.equal(nameSeenFrom("client", rule("prod/named", { exportTo: ["client"] })), "prod/named");
  assert.equal(nameSeenFrom("other", rule("prod/named", { exportTo: ["client"] })), undefined);
  const mesh = { defaultDestinationRuleExportTo: ["."] };
  assert.equal(nameSeenFrom("client", rule("prod/unsaid"), { mesh }), undefined);
});

test("a second rule for a host adds subsets, and its policy only if the first has none", () => {
  const subset = (name: string) => ({ name, labels: { version: name } });
  const first = rule("prod/first", { subsets: [subset("v1")] }, "2020-01-01T00:00:00Z");
  const tls = { trafficPolicy: { tls: { mode: "DISABLE" } } };
  const second = rule("prod/second", { ...tls, subsets: [{ ...subset("v1"), labels: {} }, subset("v2")] });
  const joined = ruleSeenFrom("prod", second + first);
  assert.equal(joined?.metadata.name, "first");
  assert.deepEqual(
    joined?.spec.subsets?.map(({ name, labels }) => [name, labels]),
    [
      ["v1", { version: "v1" }],
      ["v2", { version: "v2" }],
    ],
  );
  assert.equal(joined?.spec.trafficPolicy?.tls?.mode, "DISABLE");
});

test("a rule for selected workloads applies to these, and to those of its own namespace only", () => {
  const selecting = rule("client/some", { workloadSelector: { matchLabels: { app: "a" } } });
  const all = rule("client/all");
  const mesh = meshOf(WEB + selecting + all);
  const selected = selectingRules(mesh).map(objectKey);
  assert.equal(selected.length, 1);
  assert.equal(nameSeenFrom("client", selecting + all, { selected }), "client/some");
  assert.equal(nameSeenFrom("client", selecting + all), "client/all");
  assert.equal(nameSeenFrom("client", selecting), undefined);
  const ofServer = rule("prod/some", { workloadSelector: { matchLabels: { app: "a" } } });
  assert.equal(nameSeenFrom("client", ofServer, { selected: ["DestinationRule/prod/some"] }), undefined);
});

test("a rule for selected workloads has the subsets of those for all that are seen where it is", () => {
  const selecting = rule("prod/some", { workloadSelector: { matchLabels: { app: "a" } } });
  const subsetsOf = (exportTo: readonly string[], options: Parameters<typeof ruleSeenFrom>[2] = {}) => {
    const all = rule("prod/all", { exportTo, subsets: [{ name: "v1", labels: { version: "v1" } }] });
    const selected = ["DestinationRule/prod/some"];
    const [some, others] = [{ ...options, selected }, options].map((one) => ruleSeenFrom("prod", all + selecting, one));
    assert.deepEqual([some?.metadata.name, others?.metadata.name], ["some", "all"]);
    assert.deepEqual(
      others?.spec.subsets?.map(({ name }) => name),
      ["v1"],
    );
    return some?.spec.subsets?.map(({ name }) => name) ?? [];
  };
  assert.deepEqual(subsetsOf(["."]), ["v1"]);
  assert.deepEqual(subsetsOf([".", "client"]), ["v1"]);
  assert.deepEqual(subsetsOf(["*"]), []);
  assert.deepEqual(subsetsOf(["*"], { features: { separateExports: false } }), ["v1"]);
});

test("of rules for one host that are seen by different namespaces, the last decides whether another stands beside them", () => {
  const at = (second: number) => `2024-01-01T00:00:0${second}Z`;
  const subsets = [{ name: "v1", labels: { version: "v1" } }];
  const first = rule("prod/first", {}, at(1));
  const shown = rule("prod/shown", { exportTo: ["*"] }, at(2));
  const third = (second: number) => rule("prod/third", { subsets }, at(second));
  assert.equal(nameSeenFrom("prod", first + shown + third(3)), "prod/third");
  assert.equal(nameSeenFrom("prod", rule("prod/first", {}, at(3)) + shown + third(4)), "prod/first");
});
