import assert from "node:assert/strict";
import test from "node:test";
import { layoutOf } from "../host/control-groups.ts";
import { joinGroups, planGroups } from "./control-groups.ts";

const LIMITS = { memoryBytes: 1024, cpuMillis: 500, pids: 9 };
const AT = { id: "abc123", key: "web.default" };

test("planGroups() has a group in each hierarchy of the first kind, and one in that of the second", () => {
  const first = { version: 1, mounts: { memory: "/cg/memory", cpu: "/cg/cpu", pids: "/cg/pids" } } as const;
  assert.deepEqual(
    planGroups({ ...AT, layout: first, limits: LIMITS }).map(({ folder, settings }) => [folder, settings]),
    [
      ["/cg/memory/mizzen-abc123/web.default", { "memory.limit_in_bytes": "1024" }],
      ["/cg/cpu/mizzen-abc123/web.default", { "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000" }],
      ["/cg/pids/mizzen-abc123/web.default", { "pids.max": "9" }],
    ],
  );
  const second = { version: 2, mounts: { memory: "/cg", cpu: "/cg", pids: "/cg" } } as const;
  assert.deepEqual(planGroups({ ...AT, layout: second, limits: LIMITS }), [
    {
      version: 2,
      folder: "/cg/mizzen-abc123/web.default",
      settings: { "memory.max": "1024", "memory.swap.max": "0", "cpu.max": "50000 100000", "pids.max": "9" },
    },
  ]);
  const none = { memoryBytes: undefined, cpuMillis: undefined, pids: undefined };
  assert.deepEqual(planGroups({ ...AT, layout: second, limits: none }), []);
});

test("joinGroups() leaves a command without groups alone", () => {
  assert.deepEqual(joinGroups([], ["node"]), ["node"]);
  const argv = joinGroups([{ version: 2, folder: "/cg/x", settings: {} }], ["node", "--", "a"]);
  assert.deepEqual(argv.slice(3), ["sh", "/cg/x/cgroup.procs", "--", "node", "--", "a"]);
});

test("layoutOf() finds controllers of the first kind before those of the second", async () => {
  const second = { folder: "/cg", type: "cgroup2", options: ["rw"] };
  const first = { folder: "/cg/memory", type: "cgroup", options: ["rw", "memory"] };
  const controllers = async () => "cpuset cpu memory pids\n";
  assert.deepEqual(await layoutOf([second], controllers), {
    version: 2,
    mounts: { memory: "/cg", cpu: "/cg", pids: "/cg" },
  });
  assert.deepEqual(await layoutOf([second, first], controllers), { version: 1, mounts: { memory: "/cg/memory" } });
  assert.deepEqual(await layoutOf([], controllers), { version: 2, mounts: {} });
});
