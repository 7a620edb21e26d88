import assert from "node:assert/strict";
import type { RunningMesh } from "./mesh-run.ts";

const FILTER = "(update_rejected|warming_clusters|total_listeners_warming)$";
const PATIENCE_MS = 60_000;

/** Fails when a proxy of the mesh rejected anything, or still warms clusters or listeners. */
export async function assertSettled(mesh: RunningMesh, members: readonly string[]): Promise<void> {
  for (const member of members) {
    const stats = await settledStats(mesh, member);
    for (const [name, value] of stats) assert.equal(value, 0, `${member}: ${name}`);
    assert.ok(stats.size >= 3, `${member} shows only ${[...stats.keys()].join(", ")}`);
  }
}

/** Envoy warms for some milliseconds after a push, on a busy machine longer; what never ends is the fault. */
async function settledStats(mesh: RunningMesh, member: string): Promise<Map<string, number>> {
  for (const end = performance.now() + PATIENCE_MS; ; ) {
    const { stdout } = await mesh.exec(member, [
      "curl",
      "-sS",
      `http://localhost:15000/stats?filter=${encodeURIComponent(FILTER)}`,
    ]);
    const stats = new Map([...stdout.matchAll(/^(\S+): (\d+)$/gm)].map((m) => [m[1] ?? "", Number(m[2])]));
    if (performance.now() > end || ![...stats.values()].some((value) => value > 0)) return stats;
  }
}
