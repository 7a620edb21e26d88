import assert from "node:assert/strict";
import test from "node:test";
import { NOBODY } from "../plan/enter.ts";
import { startProblem } from "./start-problem.ts";
import type { MemberStatus } from "./status.ts";
import type { UnitStatus } from "./unit.ts";

const RUNNING: UnitStatus = { state: "running", pid: 1, restarts: 0, lastExit: undefined, quickExits: 0 };
const WEB: MemberStatus = {
  name: "web",
  workload: "web",
  namespace: "default",
  kind: "workload",
  address: "10.244.0.10",
  ports: [],
  ready: false,
  reason: "app not ready: HTTP 503",
  app: RUNNING,
  proxy: RUNNING,
  logs: { app: "/nowhere/app.log", proxy: "/nowhere/proxy.log" },
  shell: { place: { netns: "", hostname: "", etc: "" }, account: NOBODY, env: {}, cwd: "/" },
};

test("startProblem() hopes while processes run, or ended less than three times", async () => {
  assert.equal(await startProblem([WEB], false), undefined);
  const restarted = { ...RUNNING, lastExit: "exited with code 1", quickExits: 2 };
  assert.equal(await startProblem([{ ...WEB, app: restarted }], false), undefined);
});

test("startProblem() names the process that keeps ending", async () => {
  const ending = { ...RUNNING, lastExit: "exited with code 1", quickExits: 3 };
  assert.equal(
    await startProblem([{ ...WEB, proxy: ending }], false),
    'proxy of "web" exited with code 1, 3 times in a row',
  );
  const istiod = { ...WEB, kind: "control-plane", app: ending } as const;
  assert.equal(await startProblem([istiod], false), "control plane exited with code 1, 3 times in a row");
});

test("startProblem() says who is late, and why, when time is up", async () => {
  assert.equal(
    await startProblem([{ ...WEB, ready: true }, WEB], true),
    "not ready in time: web (app not ready: HTTP 503)",
  );
});
