import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { EnvoyAdmin } from "./admin.ts";
import { type DrainOptions, runEnvoy } from "./lifecycle.ts";
import { type EnvoyProcess, exitStatus, type ProcessExit, startEnvoy } from "./process.ts";

const OPTIONS: DrainOptions = {
  sidecar: true,
  terminationDrainMs: 60_000,
  exitOnZeroActiveConnections: false,
  minimumDrainMs: 0,
  checkEveryMs: 1,
  envoyStatusPort: 15021,
  envoyPrometheusPort: 15090,
};

/** An Envoy that runs until it is killed or ended by the test. */
function fakeEnvoy() {
  const { promise: exited, resolve } = Promise.withResolvers<ProcessExit>();
  const calls: string[] = [];
  const envoy: EnvoyProcess = {
    exited,
    kill: () => {
      calls.push("kill");
      resolve({ code: null, signal: "SIGKILL" });
    },
  };
  return { envoy, calls, end: resolve };
}

function run(
  envoy: EnvoyProcess,
  calls: string[],
  more: { drain?: Partial<DrainOptions>; stats?: () => string; drainFails?: boolean } = {},
) {
  const stop = new AbortController();
  const hurry = new AbortController();
  const lines: string[] = [];
  const admin: EnvoyAdmin = {
    stats: async () => more.stats?.() ?? "",
    drainListeners: async ({ inboundOnly, skipExit }) => {
      calls.push(`drain inbound=${inboundOnly} skip=${skipExit}`);
      if (more.drainFails) throw new MeshError("X", "no answer");
    },
  };
  const log = createLogger({ write: (line) => lines.push(line) });
  const status = runEnvoy({
    envoy,
    admin,
    drain: { ...OPTIONS, ...more.drain },
    log,
    stop: stop.signal,
    hurry: hurry.signal,
  });
  return { status, stop, hurry, lines };
}

test("runEnvoy() ends with Envoy's own status and one line that says so", async () => {
  const { envoy, calls, end } = fakeEnvoy();
  const { status, lines } = run(envoy, calls);
  end({ code: 3, signal: null });
  assert.equal(await status, 3);
  assert.match(lines[0] ?? "", /info\tStarting proxy agent\n/);
  assert.equal(lines.length, 2);
  assert.match(lines[1] ?? "", /error\tEnvoy exited with status 3 after .*; what it printed above says why/);
});

test("runEnvoy() reports a killed Envoy as a shell would and hints at memory", async () => {
  const { envoy, calls, end } = fakeEnvoy();
  const { status, lines } = run(envoy, calls);
  end({ code: null, signal: "SIGKILL" });
  assert.equal(await status, 137);
  assert.match(lines.join(""), /killed .*: look at memory use and limits/);
});

test("runEnvoy() drains inbound listeners of a sidecar, waits, then kills", async () => {
  const { envoy, calls } = fakeEnvoy();
  const { status, stop } = run(envoy, calls, { drain: { terminationDrainMs: 5 } });
  stop.abort();
  assert.equal(await status, 0);
  assert.deepEqual(calls, ["drain inbound=true skip=false", "kill"]);
});

test("runEnvoy() drains all listeners of a gateway", async () => {
  const { envoy, calls } = fakeEnvoy();
  const { status, stop } = run(envoy, calls, { drain: { terminationDrainMs: 5, sidecar: false } });
  stop.abort();
  await status;
  assert.equal(calls[0], "drain inbound=false skip=false");
});

test("runEnvoy() does not wait any longer when it is asked to hurry", async () => {
  const { envoy, calls } = fakeEnvoy();
  const { status, stop, hurry } = run(envoy, calls);
  stop.abort();
  hurry.abort();
  assert.equal(await status, 0);
  assert.equal(calls.at(-1), "kill");
});

test("runEnvoy() stops waiting when Envoy ends while it drains", async () => {
  const { envoy, calls, end } = fakeEnvoy();
  const { status, stop } = run(envoy, calls);
  stop.abort();
  end({ code: 0, signal: null });
  assert.equal(await status, 0);
});

test("runEnvoy() goes on when Envoy cannot be told to drain", async () => {
  const { envoy, calls } = fakeEnvoy();
  const { status, stop, lines } = run(envoy, calls, { drain: { terminationDrainMs: 1 }, drainFails: true });
  stop.abort();
  assert.equal(await status, 0);
  assert.match(lines.join(""), /warn\tEnvoy cannot be told to drain: no answer/);
});

test("runEnvoy() waits for zero active connections when asked to", async () => {
  const { envoy, calls } = fakeEnvoy();
  const counts = [2, 1, 0];
  const stats = () => `listener.0.0.0.0_8080.downstream_cx_active: ${counts.shift()}`;
  const { status, stop } = run(envoy, calls, { drain: { exitOnZeroActiveConnections: true }, stats });
  stop.abort();
  assert.equal(await status, 0);
  assert.deepEqual(counts, []);
});

test("runEnvoy() counts connections for the first time a period after the minimum", async () => {
  const { envoy, calls } = fakeEnvoy();
  const drain = { exitOnZeroActiveConnections: true, minimumDrainMs: 0, checkEveryMs: 50 };
  const { status, stop } = run(envoy, calls, { drain, stats: () => "" });
  const before = performance.now();
  stop.abort();
  await status;
  assert.ok(performance.now() - before >= 49, "it waited");
});

test("runEnvoy() gives up counting after some failures", async () => {
  const { envoy, calls } = fakeEnvoy();
  let asked = 0;
  const stats = () => {
    asked++;
    throw new MeshError("X", "refused");
  };
  const { status, stop } = run(envoy, calls, { drain: { exitOnZeroActiveConnections: true }, stats });
  stop.abort();
  assert.equal(await status, 0);
  assert.equal(asked, 5);
});

test("startEnvoy() says in one sentence that there is no such program, or that it may not be run", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "envoy-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "envoy");
  await assert.rejects(startEnvoy({ binaryPath: file, args: [] }), {
    code: "ENVOY_NOT_STARTED",
    message: `Cannot start Envoy: ${file} does not exist (ProxyConfig.binaryPath names it)`,
  });
  writeFileSync(file, "");
  chmodSync(file, 0o600);
  await assert.rejects(startEnvoy({ binaryPath: file, args: [] }), /is not a program that this user may run/);
});

test("startEnvoy() gives the status of a program that ends at once, and kill() ends one that does not", async () => {
  const failed = await startEnvoy({ binaryPath: "/bin/sh", args: ["-c", "exit 7"] });
  assert.equal(exitStatus(await failed.exited), 7);
  const endless = await startEnvoy({ binaryPath: "/bin/sleep", args: ["60"] });
  endless.kill();
  assert.equal(exitStatus(await endless.exited), 137);
});

test("runEnvoy() tells that Envoy cannot be killed, and does not wait for its end", async () => {
  const envoy: EnvoyProcess = {
    exited: new Promise(() => undefined),
    kill: () => {
      throw new Error("kill EPERM");
    },
  };
  const { status, stop, hurry, lines } = run(envoy, []);
  stop.abort();
  hurry.abort();
  assert.equal(await status, 0);
  assert.match(lines.join(""), /\twarn\tkilling proxy caused an error kill EPERM\n/);
});
