import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

const PROGRAM = join(import.meta.dirname, "../../bin/pilot-discovery.ts");
const FREE = [
  ...["--httpAddr", "--httpsAddr", "--monitoringAddr", "--grpcAddr", "--secureGRPCAddr"].map(
    (flag) => `${flag}=127.0.0.1:0`,
  ),
  "--ctrlz_port=0",
];

describe("pilot-discovery discovery", () => {
  const folder = mkdtempSync(join(tmpdir(), "discovery-"));
  after(() => rmSync(folder, { recursive: true }));

  /** A client that never finishes its request, so that the drain has something to wait for. */
  async function hold(address: string): Promise<Socket> {
    const [host = "", port = ""] = address.split(":");
    const socket = connect(Number(port), host).on("error", () => undefined);
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.write("GET /ready HTTP/1.1\r\nhost: x\r\n");
    return socket;
  }

  interface Started {
    readonly child: ChildProcess;
    readonly output: () => string;
    readonly code: Promise<number | null>;
  }

  function start(...args: string[]): Started {
    const env = { PATH: process.env.PATH ?? "", ROOT_CA_DIR: join(folder, "ca") };
    const child = spawn(process.execPath, [PROGRAM, "discovery", ...args], { cwd: folder, env });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (part: Buffer) => {
        text += part;
      });
    }
    // When all that it printed is here, too.
    const code = new Promise<number | null>((resolve) => child.once("close", resolve));
    return { child, output: () => text, code };
  }

  /** Until the log has that text. */
  async function logged({ child, output, code }: Started, text: string): Promise<void> {
    while (!output().includes(text)) {
      const more = new Promise((resolve) => child.stdout?.once("data", () => resolve("more")));
      assert.equal(await Promise.race([code, more]), "more", output());
    }
  }

  test("runs until SIGTERM and then ends with 0", async () => {
    const started = start("--registries=", "--unknown-flag=1", "--kubernetesApiQPS=5", ...FREE);
    const { child, output, code } = started;
    await logged(started, "control plane is ready");
    child.kill("SIGTERM");
    assert.equal(await code, 0, output());
    assert.match(output(), /info\tFLAG: --registries="\[\]"/);
    assert.match(output(), /warn\taccepted without effect: --kubernetesApiQPS: requests are few, and not limited\n/);
    assert.match(output(), /warn\tunknown flags are ignored: --unknown-flag=1\n/);
    assert.match(output(), /warn\tJWT_RULE is not set/);
  });

  test("ends with 0 at a SIGTERM while it starts", async () => {
    const started = start("--registries=", ...FREE);
    await logged(started, "FLAG:");
    started.child.kill("SIGTERM");
    assert.equal(await started.code, 0, started.output());
  });

  test("goes on after SIGHUP", async () => {
    const started = start("--registries=", ...FREE);
    await logged(started, "control plane is ready");
    started.child.kill("SIGHUP");
    await logged(started, "received SIGHUP: nothing to do");
    const address = /HTTP service at (\S+)/.exec(started.output())?.[1];
    assert.equal((await fetch(`http://${address}/ready`)).status, 200);
    started.child.kill("SIGTERM");
    assert.equal(await started.code, 0, started.output());
  });

  test("ends at the second signal, however long it may drain", async () => {
    const started = start("--registries=", ...FREE, "--shutdownDuration=10m");
    await logged(started, "control plane is ready");
    const socket = await hold(/HTTP service at (\S+)/.exec(started.output())?.[1] ?? "");
    started.child.kill("SIGTERM");
    await logged(started, "stopping");
    started.child.kill("SIGTERM");
    assert.equal(await started.code, 1);
    socket.destroy();
  });

  test("cuts what has not ended after --shutdownDuration", async () => {
    const started = start("--registries=", ...FREE, "--shutdownDuration=1ms");
    await logged(started, "control plane is ready");
    const socket = await hold(/HTTP service at (\S+)/.exec(started.output())?.[1] ?? "");
    started.child.kill("SIGTERM");
    assert.equal(await started.code, 0);
    socket.destroy();
  });

  test("ends with 2 and a line for each wrong flag", async () => {
    const { output, code } = start("--grpcAddr=nowhere", "--shutdownDuration=soon");
    assert.equal(await code, 2);
    assert.match(output(), /^pilot-discovery: --grpcAddr: [^\n]+\npilot-discovery: --shutdownDuration: [^\n]+\n$/);
  });

  test("ends with 1 and one line when the log cannot be written", async () => {
    const { output, code } = start("--log_target=/nowhere/log");
    assert.equal(await code, 1);
    assert.match(output(), /^pilot-discovery: cannot write the log to "\/nowhere\/log" \(--log_target\): [^\n]+\n$/);
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
