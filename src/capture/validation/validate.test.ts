/** `--run-validation` as init containers run it: the command itself, in network namespaces of the test's own. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, beforeEach, describe, test } from "node:test";
import { promisify } from "node:util";

const exec = promisify(execFile);
const namespace = `validate-${process.pid}`;
const INSIDE = ["netns", "exec", namespace, process.execPath];
const AGENT = join(import.meta.dirname, "../../bin/pilot-agent.ts");
const STANDARD = ["istio-iptables", "-u", "1337", "-b", "*", "-i", "*"];
const CHECK_ONLY = ["--skip-rule-apply", "--run-validation"];

interface Ended {
  readonly code: number;
  readonly output: string;
}

async function ended(child: ChildProcess): Promise<Ended> {
  assert.ok(child.stdout);
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  return { code, output };
}

function start(...flags: readonly string[]): ChildProcess {
  return spawn("ip", [...INSIDE, AGENT, ...STANDARD, ...flags], { stdio: ["ignore", "pipe", "inherit"] });
}

function run(...flags: readonly string[]): Promise<Ended> {
  return ended(start(...flags));
}

const skip = process.getuid?.() === 0 ? false : "needs root to make network namespaces";

describe("--run-validation in a network namespace", { skip }, () => {
  let folder = "";

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "validate-"));
    const lines = [
      `netns add ${namespace}`,
      `-n ${namespace} link set lo up`,
      `-n ${namespace} link add eth0 type veth peer name other`,
      `-n ${namespace} address add 10.79.0.1/24 dev eth0`,
      `-n ${namespace} address add fd79::1/64 dev eth0 nodad`,
      `-n ${namespace} link set eth0 up`,
      `-n ${namespace} link set other up`,
      `-n ${namespace} route add default via 10.79.0.2`,
      `-n ${namespace} route add default via fd79::2`,
    ];
    for (const line of lines) await exec("ip", line.split(" "));
  });

  after(async () => {
    await exec("ip", ["netns", "del", namespace]).catch(() => undefined);
    await rm(folder, { recursive: true });
  });

  beforeEach(() => run("--cleanup-only"));

  test("passes in the run that makes the rules, for both directions and families", async () => {
    const { code, output } = await run("--run-validation", "--dual-stack");
    assert.match(output, /inbound IPv4 is captured: 127\.0\.0\.6:15002/);
    assert.match(output, /outbound IPv4 is captured: 192\.0\.2\.1:15002/);
    assert.match(output, /inbound IPv6 is captured: \[::6\]:15002/);
    assert.match(output, /outbound IPv6 is captured: \[2001:db8::1\]:15002/);
    assert.match(output, /\tinfo\tValidation passed, iptables rules established\n$/);
    assert.equal(code, 0);
  });

  test("without rules ends with 126 and names what is not captured", async () => {
    const { code, output } = await run(...CHECK_ONLY, "--probe-timeout", "3s");
    assert.match(output, /\terror\tError connecting to 127\.0\.0\.6:15002: connection refused\n/);
    assert.match(output, /\terror\tiptables validation failed; workload is not ready for Istio\.\n/);
    assert.match(output, /^inbound IPv4: a call of user 1337 to 127\.0\.0\.6:15002 did not reach Envoy's port 15006/m);
    assert.match(output, /^outbound IPv4: a call of user 0 to 192\.0\.2\.1:15002 did not reach Envoy's port 15001/m);
    assert.match(output, /cni\.repair\.deletePods=true/);
    assert.equal(code, 126);
  });

  test("with one family captured names the other", async () => {
    await run();
    const { code, output } = await run(...CHECK_ONLY, "--dual-stack", "--probe-timeout", "3s");
    assert.match(output, /^inbound IPv6: /m);
    assert.match(output, /^outbound IPv6: /m);
    assert.doesNotMatch(output, /^(in|out)bound IPv4: /m);
    assert.equal(code, 126);
  });

  test("with a port of Envoy taken says which, without waiting", async () => {
    await run();
    const listener = "net.createServer().listen(15006, '127.0.0.1', () => console.log('ready'))";
    const other = spawn("ip", [...INSIDE, "-e", listener], { stdio: ["ignore", "pipe", "inherit"] });
    await once(other.stdout, "data");
    const { code, output } = await run(...CHECK_ONLY, "--probe-timeout", "1h");
    other.kill();
    assert.match(output, /\terror\tError on listening: Cannot listen on 127\.0\.0\.1:15006: .*EADDRINUSE/);
    assert.match(output, /^inbound IPv4: Cannot listen on 127\.0\.0\.1:15006/m);
    assert.match(output, /Stop the program that listens there/);
    assert.equal(code, 126);
  });

  test("passes as soon as somebody makes the rules", async () => {
    const check = start(...CHECK_ONLY, "--probe-timeout", "1m");
    assert.ok(check.stdout);
    let output = "";
    for await (const chunk of check.stdout) {
      if (!output.includes("Error connecting") && `${output}${chunk}`.includes("Error connecting")) await run();
      output += chunk;
    }
    assert.match(output, /Error connecting[\s\S]*Validation passed/);
  });

  test("checks inbound alone when the process is the proxy's user, as in Istio's init container", async () => {
    await run();
    const { code, output } = await runAsProxy(folder);
    assert.match(output, /outbound IPv4 is not checked: user 1337 may not act as user 65534/);
    assert.match(output, /Validation passed/);
    assert.equal(code, 0);
    await run("--cleanup-only");
    const failed = await runAsProxy(folder);
    assert.match(failed.output, /^inbound IPv4: .*did not reach Envoy's port 15006/m);
    assert.equal(failed.code, 126);
  });

  test("works in another network namespace than the caller's", async () => {
    const flags = ["--network-namespace", `/run/netns/${namespace}`, "--run-validation"];
    const outside = spawn(process.execPath, [AGENT, ...STANDARD, ...flags], { stdio: ["ignore", "pipe", "inherit"] });
    const { code, output } = await ended(outside);
    assert.match(output, /inbound IPv4 is captured/);
    assert.equal(code, 0);
  });

  test("refuses a port or a time that is none", async () => {
    const { code, output } = await run(...CHECK_ONLY, "--probe-timeout", "soon", "--iptables-probe-port", "99999");
    assert.match(output, /--probe-timeout .*"soon"/);
    assert.match(output, /--iptables-probe-port .*"99999"/);
    assert.equal(code, 1);
  });
});

/** Everything is loaded first: that user may not be able to read the sources. */
async function runAsProxy(folder: string): Promise<Ended> {
  const program = join(folder, "as-proxy.mjs");
  const load = (path: string) => JSON.stringify(join(import.meta.dirname, path));
  await writeFile(
    program,
    `import { createLogger } from ${load("../../lib/log/log.ts")};
import { runCapture } from ${load("../run.ts")};
process.setgroups([]);
process.setgid(1337);
process.setuid(1337);
const given = { inboundPorts: "*", outboundRanges: "*", skipRuleApply: true, runValidation: true, probeTimeout: "3s" };
const log = createLogger({ write: (line) => process.stdout.write(line) });
await runCapture({ given, env: process.env, log }).catch((error) => {
  console.log(error.message);
  process.exitCode = error.code === "CAPTURE_INEFFECTIVE" ? 126 : 1;
});`,
  );
  return ended(spawn("ip", [...INSIDE, program], { stdio: ["ignore", "pipe", "inherit"] }));
}
