import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

const PROGRAM = join(import.meta.dirname, "../pilot-discovery.ts");
const FREE = ["--httpAddr", "--monitoringAddr", "--grpcAddr", "--secureGRPCAddr"].map((flag) => `${flag}=127.0.0.1:0`);

describe("pilot-discovery discovery", () => {
  const folder = mkdtempSync(join(tmpdir(), "discovery-"));
  after(() => rmSync(folder, { recursive: true }));

  function start(...args: string[]): { child: ChildProcess; output: () => string; code: Promise<number | null> } {
    const env = { PATH: process.env.PATH ?? "", ROOT_CA_DIR: join(folder, "ca") };
    const child = spawn(process.execPath, [PROGRAM, "discovery", ...args], { cwd: folder, env });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (part: Buffer) => {
        text += part;
      });
    }
    const code = new Promise<number | null>((resolve) => child.once("exit", resolve));
    return { child, output: () => text, code };
  }

  test("runs until SIGTERM and then ends with 0", async () => {
    const { child, output, code } = start("--registries=", "--unknown-flag=1", ...FREE);
    while (!output().includes("control plane is ready")) {
      const ended = await Promise.race([
        code,
        new Promise((resolve) => child.stdout?.once("data", () => resolve(undefined))),
      ]);
      assert.equal(ended, undefined, output());
    }
    child.kill("SIGTERM");
    assert.equal(await code, 0, output());
    assert.match(output(), /info\tFLAG: --registries="\[\]"/);
    assert.match(output(), /warn\taccepted without effect: --httpsAddr: injection and validation are not served yet\n/);
    assert.match(output(), /warn\tunknown flags are ignored: --unknown-flag=1\n/);
    assert.match(output(), /warn\tJWT_RULE is not set/);
  });

  test("ends with 2 and a line for each wrong flag", async () => {
    const { output, code } = start("--grpcAddr=nowhere", "--shutdownDuration=soon");
    assert.equal(await code, 2);
    assert.match(output(), /^pilot-discovery: --grpcAddr: [^\n]+\npilot-discovery: --shutdownDuration: [^\n]+\n$/);
  });

  test("ends with 1 and one line when a part cannot start", async () => {
    const { output, code } = start("--registries=", ...FREE, "--httpAddr=192.0.2.1:0");
    assert.equal(await code, 1);
    assert.match(
      output(),
      /error\tcannot listen on 192\.0\.2\.1:0 \(--httpAddr\): the machine has no such address\tcode=LISTEN_FAILED\n/,
    );
    assert.doesNotMatch(output(), /\n\s+at /);
  });
});
