import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#lib/log.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { meshOf } from "../../../test/support/mesh.ts";
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

function watched(first: Snapshot) {
  let current = first;
  const lines: string[] = [];
  const counted: object[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const metrics = { count: (_: string, labels: object) => counted.push(labels) };
  const source = { current: () => current, objects: () => [], subscribe: () => () => undefined };
  const change = (next: Snapshot) => {
    current = next;
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

test("many conflicts do not flood the log", async () => {
  const hosts = Array.from({ length: 80 }, (_, i) => `h${i}.example.com`);
  const all = hosts.flatMap((host, i) => [virtualService(`a${i}`, host), virtualService(`b${i}`, host)]);
  const { watch, lines } = watched(meshOf(all.join("")));
  await watch.look();
  assert.equal(lines.length, 51);
  assert.match(lines.at(-1) ?? "", /30 more conflicts: see \/debug\/push_status/);
});

test("servers of gateways that are left out are counted under the name of their gateway", async () => {
  const { watch, counted } = watched(meshOf(gateway("one", "HTTP") + gateway("two", "TCP")));
  await watch.look();
  assert.deepEqual(counted, [{ type: "gateway", name: "edge/two" }]);
});
