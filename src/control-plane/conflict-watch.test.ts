import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { createLogger } from "#lib/log/log.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { meshOf, objectsOf } from "../../test/support/mesh.ts";
import { object } from "../../test/support/objects.ts";
import { conflictWatch } from "./conflict-watch.ts";

function virtualService(name: string, host: string): string {
  const spec = { hosts: [host], http: [{ route: [{ destination: { host: "a" } }] }] };
  const metadata = { name, namespace: "default" };
  return `${JSON.stringify({ apiVersion: "networking.istio.io/v1", kind: "VirtualService", metadata, spec })}\n---\n`;
}

function gateway(name: string, protocol: string): string {
  const servers = [{ port: { number: 80, name: "p", protocol }, hosts: ["*"] }];
  const metadata = { name, namespace: "edge" };
  return `${JSON.stringify({ apiVersion: "networking.istio.io/v1", kind: "Gateway", metadata, spec: { selector: { a: "b" }, servers } })}\n---\n`;
}

function watched(first: Snapshot, described: readonly ConfigObject[] = []) {
  let current = first;
  let objects = described;
  const lines: string[] = [];
  const counted: object[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const metrics = { count: (_: string, labels: object) => counted.push(labels) };
  const source = { current: () => current, objects: () => objects, subscribe: () => () => undefined };
  const change = (next: Snapshot, nextObjects: readonly ConfigObject[] = []) => {
    current = next;
    objects = nextObjects;
  };
  return { watch: conflictWatch({ source, metrics, log }), lines, counted, change };
}

test("a conflict is said once with both owners, and again after it was gone", async () => {
  const [clean, twice] = [
    meshOf(virtualService("one", "a")),
    meshOf(virtualService("one", "a") + virtualService("two", "a")),
  ];
  const { watch, lines, change } = watched(twice);
  await watch.look();
  await watch.look();
  assert.equal(lines.length, 1);
  assert.match(
    lines[0] ?? "",
    /warn\tmodel\tVirtualService\/default\/two: host "a" .* by VirtualService\/default\/one/,
  );
  assert.equal(watch.count("pilot_vservice_dup_domain"), 1);
  change(clean);
  await watch.look();
  assert.deepEqual(watch.conflicts, []);
  change(twice);
  await watch.look();
  assert.equal(lines.length, 2);
});

test("a delegate that is not there, or not for its root, is said once, and again after it was there", async () => {
  const root = (delegate: object) => object("VirtualService", "root", { hosts: ["a"], http: [{ delegate }] });
  const leaf = object("VirtualService", "other/leaf", {
    http: [{ route: [{ destination: { host: "a" } }] }],
    exportTo: ["."],
  });
  const missing = root({ name: "leaf" });
  const { watch, lines, change } = watched(meshOf(missing), objectsOf(missing));
  await watch.look();
  await watch.look();
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /warn\tmodel\tVirtualService\/default\/root: delegate "default\/leaf" does not exist/);
  const hidden = root({ name: "leaf", namespace: "other" }) + leaf;
  change(meshOf(hidden), objectsOf(hidden));
  await watch.look();
  assert.match(lines[1] ?? "", /root: delegate "other\/leaf" is not exported to namespace "default"/);
  const shown = hidden.replace('"exportTo":["."]', '"exportTo":["default"]');
  change(meshOf(shown), objectsOf(shown));
  await watch.look();
  change(meshOf(hidden), objectsOf(hidden));
  await watch.look();
  assert.equal(lines.length, 3);
  assert.deepEqual(watch.conflicts, []);
});

test("many conflicts do not flood the log", async () => {
  const hosts = Array.from({ length: 80 }, (_, i) => `h${i}.example.com`);
  const all = hosts.flatMap((host, i) => [virtualService(`a${i}`, host), virtualService(`b${i}`, host)]);
  const { watch, lines } = watched(meshOf(all.join("")));
  await watch.look();
  assert.equal(lines.length, 51);
  assert.match(lines.at(-1) ?? "", /30 more conflicts: see \/debug\/push_status/);
});

test("many delegates that are not there do not flood the log, and the others are said after the next change", async () => {
  const routes = Array.from({ length: 80 }, (_, i) => ({ delegate: { name: `leaf-${i}` } }));
  const root = object("VirtualService", "root", { hosts: ["a"], http: routes });
  const conflict = virtualService("one", "b") + virtualService("two", "b");
  const { watch, lines, change } = watched(meshOf(root + conflict), objectsOf(root + conflict));
  await watch.look();
  assert.equal(lines.length, 52);
  assert.match(lines[0] ?? "", /host "b"/);
  assert.match(lines.at(-1) ?? "", /30 more such delegates: said after the next change/);
  change(meshOf(root), objectsOf(root));
  await watch.look();
  const told = lines.flatMap((line) => /delegate "(.+)" does not exist/.exec(line)?.[1] ?? []);
  assert.equal(lines.length, 82);
  assert.equal(new Set(told).size, 80);
});

test("servers of gateways that are left out are counted under the name of their gateway", async () => {
  const { watch, counted } = watched(meshOf(gateway("one", "HTTP") + gateway("two", "TCP")));
  await watch.look();
  assert.deepEqual(counted, [{ type: "gateway", name: "edge/two" }]);
});
