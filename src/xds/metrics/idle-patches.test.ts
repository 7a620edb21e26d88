import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import { IdlePatchReport } from "./idle-patches.ts";
import { patchCounter } from "./patch-status.ts";

const IDLE = object("EnvoyFilter", "typo", {
  configPatches: [
    { applyTo: "CLUSTER", match: { cluster: { name: "nothing" } }, patch: { operation: "REMOVE" } },
    { applyTo: "CLUSTER", match: { cluster: { name: "PassthroughCluster" } }, patch: { operation: "REMOVE" } },
  ],
});

/** A report, what it said, and a way to let time pass until it has nothing left to do. */
function reporting(proxies = [proxyOf()]) {
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  const clock = {
    now: () => 0,
    after: (_: number, callback: () => void) => {
      waiting.add(callback);
      return () => void waiting.delete(callback);
    },
  };
  const log = createLogger({ write: (line) => void lines.push(line), levels: { all: "warn" } });
  const figures: string[] = [];
  const set = (name: string, value: number, labels: object = {}) =>
    void figures.push([name, ...Object.values(labels), value].join(" "));
  const onChecked = patchCounter({ count: () => undefined, observe: () => undefined, set });
  const report = new IdlePatchReport({ log, clock, proxies: () => proxies, onChecked });
  const calm = () => {
    for (const callback of [...waiting]) callback();
  };
  return { report, lines, calm, waiting, figures };
}

test("a patch that changes nothing is told once, with object and field", () => {
  const { report, lines, calm } = reporting();
  const snapshot = meshOf(IDLE);
  report.changed(snapshot);
  assert.deepEqual(lines, [], "not before things have calmed down");
  calm();
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /EnvoyFilter\/default\/typo.*spec\.configPatches\[0\]/);
  report.changed(snapshot);
  calm();
  assert.equal(lines.length, 1);
});

test("filters are counted by what their patches are for", () => {
  const { report, calm, figures } = reporting();
  const useless = [
    { applyTo: "VIRTUAL_HOST", match: { routeConfiguration: { name: "9" } }, patch: { operation: "REMOVE" } },
  ];
  report.changed(meshOf(`${IDLE}${object("EnvoyFilter", "useless", { configPatches: useless })}`));
  calm();
  assert.deepEqual(figures.sort(), [
    "pilot_envoy_filter_status default/typo cluster applied 1",
    "pilot_envoy_filter_status default/useless vhost applied 0",
  ]);
});

test("without EnvoyFilters there is nothing to do, and after the end neither", () => {
  const { report, waiting } = reporting();
  report.changed(meshOf(""));
  assert.equal(waiting.size, 0);
  report.changed(meshOf(IDLE));
  report.stop();
  assert.equal(waiting.size, 0);
});

test("without proxies nothing is known", () => {
  const { report, lines, calm } = reporting([]);
  report.changed(meshOf(IDLE));
  calm();
  assert.deepEqual(lines, []);
});
