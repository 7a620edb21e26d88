import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { activeConnections } from "./active-connections.ts";

const PORTS = { envoyStatusPort: 15021, envoyPrometheusPort: 15090 };
const table = join(
  process.env.CONFORMANCE ?? join(import.meta.dirname, "../../../../shared/conformance"),
  "pkg/envoy/tables/TestActiveConnections.json",
);

test("activeConnections() counts as Istio's table says", { skip: existsSync(table) ? false : `no ${table}` }, () => {
  const { cases } = JSON.parse(readFileSync(table, "utf8")) as {
    cases: { stats: string; expected: number; name: string }[];
  };
  for (const { name, stats, expected } of cases) assert.equal(activeConnections(stats, PORTS) ?? -1, expected, name);
});

test("activeConnections() leaves out own listeners, workers and lines it cannot read", () => {
  const stats = [
    "listener.0.0.0.0_8080.downstream_cx_active: 3",
    "listener.0.0.0.0_8080.worker_0.downstream_cx_active: 3",
    "listener.0.0.0.0_15021.downstream_cx_active: 9",
    "listener.admin.downstream_cx_active: 9",
    "listener.x.downstream_cx_active: many",
    "no separator",
  ].join("\n");
  assert.equal(activeConnections(stats, PORTS), 3);
});
