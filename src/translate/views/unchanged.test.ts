import assert from "node:assert/strict";
import { test } from "node:test";
import type { Snapshot } from "#model/snapshot.ts";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { changedEndpoints, haveSamePlans } from "./unchanged.ts";
import { viewsOf } from "./views.ts";

const entry = (name: string, endpoint: string, resolution = "STATIC") => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: default}
spec: {hosts: [${name}.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: ${resolution}, endpoints: [${endpoint}]}
`;
const rule = (balancer: string) => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: a, namespace: default}
spec: {host: a.example.com, trafficPolicy: {loadBalancer: {simple: ${balancer}}}}
`;
const OTHER = entry("b", "{address: 10.0.0.9}");
const before = (first: string, more = "") => meshOf([first, OTHER, more].filter(Boolean).join("---"));
const after = (previous: Snapshot, first: string, more = "") =>
  meshOf([first, OTHER, more].filter(Boolean).join("---"), { previous });

test("plans stay when endpoints move, and no longer when something else depends on these", () => {
  const cases: readonly [what: string, from: string, to: string, more: string, same: boolean][] = [
    ["an address", "{address: 10.0.0.1}", "{address: 10.0.0.2}", "", true],
    ["no endpoint is left", "{address: 10.0.0.1}", "", "", true],
    ["an account", "{address: 10.0.0.1}", "{address: 10.0.0.1, serviceAccount: b}", "", false],
    ["an address that is called directly", "{address: 10.0.0.1}", "{address: 10.0.0.2}", rule("PASSTHROUGH"), false],
    ["an address, with a rule", "{address: 10.0.0.1}", "{address: 10.0.0.2}", rule("RANDOM"), true],
  ];
  for (const [what, from, to, more, same] of cases) {
    const old = before(entry("a", from), more);
    assert.equal(haveSamePlans("", old, after(old, entry("a", to), more)), same, what);
  }
});

test("plans change with endpoints that are names, and with any object", () => {
  const dns = before(entry("a", "{address: x.example.com}", "DNS"));
  assert.equal(haveSamePlans("", dns, after(dns, entry("a", "{address: y.example.com}", "DNS"))), false);
  const old = before(entry("a", "{address: 10.0.0.1}"));
  assert.equal(haveSamePlans("", old, after(old, entry("a", "{address: 10.0.0.1}"), rule("RANDOM"))), false);
  assert.equal(haveSamePlans("", old, after(old, entry("c", "{address: 10.0.0.1}"))), false);
});

test("only clusters of hosts whose endpoints moved are looked at again", () => {
  const old = before(entry("a", "{address: 10.0.0.1}"));
  const moved = after(old, entry("a", "{address: 10.0.0.2}"));
  const view = viewsOf(moved, proxyOf({ ip: "10.1.0.1", name: "web-1" })).endpoints;
  const changed = changedEndpoints(old, moved, view);
  assert.equal(changed("outbound|80||a.example.com"), true);
  assert.equal(changed("outbound|80|v1|a.example.com"), true);
  assert.equal(changed("outbound|80||b.example.com"), false);
  assert.equal(changedEndpoints(old, old, view)("outbound|80||a.example.com"), false);
  const ruled = after(old, entry("a", "{address: 10.0.0.1}"), rule("RANDOM"));
  assert.equal(changedEndpoints(old, ruled, view)("outbound|80||b.example.com"), true);
  const more = after(old, entry("a", "{address: 10.0.0.1}"), entry("c", "{address: 10.0.0.3}"));
  assert.equal(changedEndpoints(old, more, view)("outbound|80||c.example.com"), true);
  assert.equal(changedEndpoints(old, more, view)("outbound|80||a.example.com"), false);
  const less = after(more, entry("a", "", "NONE"));
  assert.equal(changedEndpoints(more, less, view)("outbound|80||a.example.com"), true);
  assert.equal(changedEndpoints(more, less, view)("outbound|80||b.example.com"), false);
  assert.equal(changedEndpoints(more, less, view)("outbound|80||c.example.com"), true);
});
