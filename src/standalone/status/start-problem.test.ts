import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { NOBODY } from "../plan/enter.ts";
import type { UnitStatus } from "../supervise/unit.ts";
import { startProblem } from "./start-problem.ts";
import type { MemberStatus } from "./status.ts";

const RUNNING: UnitStatus = {
  state: "running",
  pid: 1,
  restarts: 0,
  lastExit: undefined,
  exitCode: undefined,
  quickExits: 0,
};
const WEB: MemberStatus = {
  name: "web",
  workload: "web",
  namespace: "default",
  labels: {},
  kind: "workload",
  address: "10.244.0.10",
  ports: [],
  job: false,
  state: "running",
  ready: false,
  reason: "app not ready: HTTP 503",
  app: RUNNING,
  proxy: RUNNING,
  logs: { app: "/nowhere/app.log", proxy: "/nowhere/proxy.log" },
  shell: {
    place: { netns: "", hostname: "", etc: "", namespaces: "", state: "", visible: [], owner: 0 },
    account: NOBODY,
    env: {},
    cwd: "/",
  },
};

test("startProblem() hopes while processes run, or ended less than three times", async () => {
  assert.equal(await startProblem([WEB], [], false), undefined);
  const restarted = { ...RUNNING, lastExit: "exited with code 1", quickExits: 2 };
  assert.equal(await startProblem([{ ...WEB, app: restarted }], [], false), undefined);
});

test("startProblem() names the process that keeps ending", async () => {
  const ending = { ...RUNNING, lastExit: "exited with code 1", quickExits: 3 };
  assert.equal(
    await startProblem([{ ...WEB, proxy: ending }], [], false),
    'proxy of "web" exited with code 1, 3 times in a row',
  );
  const istiod = { ...WEB, kind: "control-plane", app: ending } as const;
  assert.equal(await startProblem([istiod], [], false), "control plane exited with code 1, 3 times in a row");
});

test("startProblem() quotes what the process said last, without what Node.js adds to an error", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mizzen-start-problem-"));
  const app = join(folder, "app.log");
  const ending = { ...RUNNING, lastExit: "exited with code 1", quickExits: 3 };
  const saidAfter = async (text: string) => {
    await writeFile(app, text);
    return (await startProblem([{ ...WEB, app: ending, logs: { app, proxy: undefined } }], [], false))?.split("; ")[1];
  };
  try {
    assert.equal(await saidAfter("listening\nno database\n"), "it said: no database");
    const error = "Error: Cannot find module '/srv/app.mjs'";
    const trace = `node:internal:9\n  throw e;\n  ^\n\n${error}\n    at x (y:1:2) {\n  code: 'E'\n}\n\nNode.js v24.1.0\n`;
    assert.equal(await saidAfter(trace), `it said: ${error}`);
    assert.equal(await saidAfter("  indented\n"), "it said: indented");
    assert.equal(await saidAfter("\n"), undefined);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("startProblem() says who is late, and why, when time is up", async () => {
  assert.equal(
    await startProblem([{ ...WEB, ready: true }, WEB], [], true),
    "not ready in time: web (app not ready: HTTP 503)",
  );
});
