import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { eventually, temporaryFolder } from "../../test/support/fake-control-plane.ts";

const FREE = ["--httpAddr", "--httpsAddr", "--monitoringAddr", "--grpcAddr", "--secureGRPCAddr"].map(
  (flag) => `${flag}=127.0.0.1:0`,
);
const PROGRAMS = [
  { program: "pilot-agent", args: ["wait", "--url", "http://127.0.0.1:1/"], says: "Waiting for Envoy" },
  { program: "pilot-discovery", args: ["discovery", "--registries=", "--ctrlz_port=0", ...FREE], says: "ready" },
];

for (const { program, args, says } of PROGRAMS) {
  test(`${program} goes on at signals without a meaning, and opens no debugger`, { timeout: 60_000 }, async (t) => {
    const child = spawn(process.execPath, [join(import.meta.dirname, `${program}.ts`), ...args], {
      cwd: temporaryFolder(t),
      env: { PATH: process.env.PATH ?? "" },
    });
    t.after(() => child.kill("SIGKILL"));
    let text = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (part) => {
        text += part;
      });
    }
    await eventually(
      () => `it says "${says}": ${text}`,
      () => text.includes(says),
    );
    for (const signal of ["SIGUSR1", "SIGUSR2", "SIGALRM"] as const) {
      child.kill(signal);
      // It has nothing to say about them: what would happen, happens at once.
      await delay(100);
      assert.equal(child.exitCode ?? child.signalCode, null, signal);
    }
    assert.doesNotMatch(text, /Debugger/);
  });
}
