import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { sleep } from "#lib/async/sleep.ts";
import type { ProcessPlan } from "../plan/process.ts";
import { Unit, type UnitStatus } from "./unit.ts";

interface Fixture extends AsyncDisposable {
  readonly plan: ProcessPlan;
  readonly log: () => Promise<string>;
}

/** A shell script as a process of a plan; it may use $FOLDER. */
async function script(text: string): Promise<Fixture> {
  const folder = await mkdtemp(join(tmpdir(), "unit-"));
  const log = join(folder, "log");
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  return {
    plan: {
      argv: ["sh", "-c", text],
      place: undefined,
      env: { PATH: "/usr/bin:/bin", FOLDER: folder },
      cwd: folder,
      log,
      account: { uid, gid, home: "/" },
    },
    log: () => readFile(log, "utf8"),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Runs a unit until its status satisfies the condition. */
async function runUntil(plan: ProcessPlan, condition: (status: UnitStatus) => boolean): Promise<UnitStatus> {
  const stop = new AbortController();
  let reached: UnitStatus | undefined;
  const unit = new Unit({
    plan,
    graceMs: 2000,
    onChange: (status) => {
      if (reached !== undefined || !condition(status)) return;
      reached = status;
      stop.abort();
    },
  });
  await unit.run(stop.signal);
  assert.ok(reached);
  assert.equal(unit.status.state, "stopped");
  return reached;
}

test("Unit starts a process that ended again, and counts", async () => {
  await using fixture = await script("echo started; exit 3");
  const status = await runUntil(fixture.plan, ({ restarts, state }) => restarts === 2 && state === "pausing");
  assert.equal(status.lastExit, "exited with code 3");
  assert.equal(status.quickExits, 3);
  assert.equal(await fixture.log(), "started\nstarted\nstarted\n");
});

test("Unit says that a process was killed, and that a program cannot be started", async () => {
  await using killed = await script("kill -9 $$");
  const status = await runUntil(killed.plan, ({ lastExit }) => lastExit !== undefined);
  assert.equal(status.lastExit, "was killed by SIGKILL");
  const missing = { ...killed.plan, argv: ["/nowhere/program"] };
  const other = await runUntil(missing, ({ lastExit }) => lastExit !== undefined);
  assert.match(other.lastExit ?? "", /^cannot be started: .*ENOENT/);
});

test("Unit ends what a process left behind before it starts the next one", async () => {
  await using fixture = await script('sleep 1000 & echo "$!" >> "$FOLDER/children"; exit 1');
  await runUntil(fixture.plan, ({ restarts, state }) => restarts === 1 && state === "pausing");
  const children = (await readFile(join(fixture.plan.cwd, "children"), "utf8")).trim().split("\n").map(Number);
  assert.equal(children.length, 2);
  for (const pid of children) await untilGone(pid);
});

test("Unit asks a process to end, and insists when it does not", async () => {
  await using polite = await script('trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.01; done');
  await untilLogged(polite, "up");
  assert.match(await polite.log(), /bye/);
  await using stubborn = await script('trap "" TERM; echo up; while :; do sleep 0.01; done');
  const started = performance.now();
  await untilLogged(stubborn, "up", 100);
  // A timer may be a moment early.
  assert.ok(performance.now() - started > 95);
});

test("Unit runs its companion beside every life of the process", async () => {
  await using fixture = await script("exit 1");
  const stop = new AbortController();
  let lives = 0;
  const unit = new Unit({
    plan: fixture.plan,
    graceMs: 100,
    onChange: ({ restarts }) => {
      if (restarts === 2) stop.abort();
    },
    beside: async (signal) => {
      lives++;
      await sleep(60_000, signal);
    },
  });
  await unit.run(stop.signal);
  assert.ok(lives >= 2);
});

/** Runs a unit until its process has printed a word, then stops it. */
async function untilLogged({ plan, log }: Fixture, word: string, graceMs = 5000): Promise<void> {
  const stop = new AbortController();
  const unit = new Unit({ plan, graceMs, onChange: () => undefined });
  const running = unit.run(stop.signal);
  while (!(await log().catch(() => "")).includes(word)) await sleep(5, stop.signal);
  stop.abort();
  await running;
}

async function untilGone(pid: number): Promise<void> {
  const never = new AbortController().signal;
  for (;;) {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
    if (stat === undefined || stat.includes(") Z ")) return;
    await sleep(5, never);
  }
}
