import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ControlPlaneProcess } from "./control-plane-process.ts";
import { runLoad } from "./load.ts";
import { MeshFolder } from "./mesh-folder.ts";
import { ISTIO_50_X_500 } from "./recorded.ts";
import { figuresTable } from "./table.ts";

test("a small load measures everything that the table shows", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-bench-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const shape = { proxies: 3, services: 20, own: true };
  const mesh = new MeshFolder(join(folder, "config"), shape);
  mesh.prepare();
  await using controlPlane = await ControlPlaneProcess.start(folder, join(folder, "config"));
  const figures = await runLoad({ shape, mesh, controlPlane, rounds: 1, settleMs: 0 });
  for (const change of [figures.endpoint, figures.route, figures.service]) {
    assert.ok(change.p99Ms > 0 && change.p50Ms <= change.p99Ms && change.kilobytesPerProxy > 0);
  }
  assert.ok(figures.connectMegabytes > 0 && figures.privateMegabytes > 10);
  const { loopDelayMs = Number.NaN, churn } = figures;
  assert.ok(loopDelayMs >= 0 && (churn?.changesPerSecond ?? 0) > 1 && (churn?.lastMs ?? 0) > 0);
});

test("figuresTable() puts figures side by side, and a dash where there is none", () => {
  const lines = figuresTable([
    ["Istio", ISTIO_50_X_500],
    ["other", { ...ISTIO_50_X_500, privateMegabytes: 10 }],
  ]).split("\n");
  assert.match(lines[0] ?? "", /Istio +other$/);
  assert.match(lines.find((line) => line.startsWith("private memory")) ?? "", /^private memory +216 MB +10 MB$/);
  assert.match(lines.at(-1) ?? "", /all have the last one +- +-$/);
  assert.match(lines.find((line) => line.startsWith("  bytes ")) ?? "", /- +-$/);
  assert.equal(new Set(lines.map((line) => line.length)).size, 1);
});
