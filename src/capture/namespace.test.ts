/** The rules at work: real connections in network namespaces of the test's own. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { SILENT } from "#lib/log.ts";
import { systemCommands } from "./commands.ts";
import type { GivenOptions } from "./options.ts";
import { runCapture } from "./run.ts";

const exec = promisify(execFile);
const pod = `capture-pod-${process.pid}`;
const peer = `capture-peer-${process.pid}`;
const netns = `/run/netns/${pod}`;
const env = { PATH: process.env.PATH };
const inPod = systemCommands({ env, networkNamespace: netns });

const POD = "10.77.0.1";
const PEER = "10.77.0.2";
/** Not the address of anything: only a redirected connection gets an answer. */
const SERVICE = "10.96.0.10";
const NAME_SERVER = "10.96.0.53";
const STANDARD: GivenOptions = {
  proxyUid: "1337",
  mode: "REDIRECT",
  inboundPorts: "*",
  inboundPortsExcluded: "15090,15021,15020",
  outboundRanges: "*",
};

function capture(given: GivenOptions): Promise<void> {
  return runCapture({ given: { networkNamespace: netns, ...given }, env, log: SILENT });
}

async function rules(): Promise<string> {
  const [v4, v6] = await Promise.all([inPod.run("iptables-save", []), inPod.run("ip6tables-save", [])]);
  return `${v4.stdout}${v6.stdout}`.replaceAll(/^#.*\n|\[\d+:\d+\]/gm, "");
}

test("runCapture() says so when the namespace does not exist", async () => {
  const run = runCapture({ given: { networkNamespace: "/run/netns/no-such-namespace" }, env, log: SILENT });
  await assert.rejects(run, {
    code: "CAPTURE_FAILED",
    message: /^Cannot enter the network namespace "\/run\/netns\/no-such/,
  });
});

test("runCapture() refuses what it cannot do, before it does anything", async () => {
  const refused = (given: GivenOptions) =>
    assert.rejects(runCapture({ given, env, log: SILENT }), { code: "CAPTURE_OPTIONS" });
  await refused({ runValidation: true, dryRun: true });
  await refused({ proxyPort: "none", dryRun: true });
  await refused({ forcedBinary: "bpf" });
});

const isRoot = process.getuid?.() === 0;
const skip = isRoot ? false : "needs root to make network namespaces";

describe("capture in a network namespace", { skip }, () => {
  const servers: ChildProcess[] = [];
  let folder = "";

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "capture-"));
    await makeNamespaces();
    // Each port answers with a name, so that an answer tells where the connection ended.
    servers.push(await serve(pod, folder, { 15001: "outbound", 15006: "inbound", 15021: "health", 9000: "local" }));
    servers.push(await serve(peer, folder, { 7000: "peer" }));
  });

  after(async () => {
    for (const server of servers) server.kill("SIGKILL");
    await exec("ip", ["netns", "del", pod]).catch(() => undefined);
    await exec("ip", ["netns", "del", peer]).catch(() => undefined);
    await rm(folder, { recursive: true });
  });

  test("connections are redirected, but not the proxy's, excluded ones and loopback", async () => {
    assert.equal(await call(pod, `${PEER}:7000`), "peer");
    await capture(STANDARD);
    const answers = {
      outbound: await call(pod, `${SERVICE}:80`),
      peer: await call(pod, `${PEER}:7000`),
      proxy: await call(pod, `${PEER}:7000`, 1337),
      proxyToItself: await call(pod, `${POD}:9000`, 1337),
      loopback: await call(pod, "127.0.0.1:9000"),
      inbound: await call(peer, `${POD}:9000`),
      excluded: await call(peer, `${POD}:15021`),
    };
    assert.deepEqual(answers, {
      outbound: "outbound",
      peer: "outbound",
      proxy: "peer",
      proxyToItself: "inbound",
      loopback: "local",
      inbound: "inbound",
      excluded: "health",
    });
  });

  test("DNS queries reach the agent over UDP and TCP, except those of the proxy", async () => {
    await capture({ ...STANDARD, redirectDns: true, captureAllDns: true });
    assert.equal(await ask("udp", 65534), "agent");
    assert.equal(await ask("tcp", 65534), "agent");
    assert.equal(await ask("udp", 1337), "");
  });

  test("a second run changes nothing, and other settings give what a first run with them gives", async () => {
    const other: GivenOptions = {
      ...STANDARD,
      excludedInterfaces: "eth9",
      outboundRanges: "10.0.0.0/8",
      dropInvalid: true,
    };
    await capture({ cleanupOnly: true });
    await capture(other);
    const fresh = await rules();
    await capture({ ...other, virtualInterfaces: "tap0", mode: "TPROXY", redirectDns: true, captureAllDns: true });
    assert.notEqual(await rules(), fresh);
    await capture(other);
    assert.equal(withoutEmptyTables(await rules()), withoutEmptyTables(fresh));
    await call(pod, `${SERVICE}:80`);
    const counted = (await inPod.run("iptables-save", ["-c"])).stdout;
    await capture(other);
    assert.equal(timeless((await inPod.run("iptables-save", ["-c"])).stdout), timeless(counted));
    assert.match(counted, /\[[1-9]\d*:\d+\] -A OUTPUT -j ISTIO_OUTPUT/);
  });

  test("cleaning removes what was made and leaves what others made", async () => {
    await capture({ cleanupOnly: true });
    await inPod.run("iptables", "-t nat -A OUTPUT -d 203.0.113.1/32 -j ACCEPT".split(" "));
    await inPod.run("iptables", "-t nat -N CUSTOM".split(" "));
    const foreign = withoutEmptyTables(await rules());
    await capture({
      ...STANDARD,
      mode: "TPROXY",
      dualStack: true,
      redirectDns: true,
      captureAllDns: true,
      dropInvalid: true,
    });
    assert.match((await inPod.run("ip", ["rule"])).stdout, /fwmark 0x539 lookup 133/);
    await capture({ cleanupOnly: true });
    assert.equal(withoutEmptyTables(await rules()), foreign);
    assert.doesNotMatch((await inPod.run("ip", ["rule"])).stdout, /fwmark/);
    await capture({ cleanupOnly: true });
    assert.equal(withoutEmptyTables(await rules()), foreign);
  });

  test("a failure half-way leaves the namespace as it was", async () => {
    await capture({ cleanupOnly: true });
    await capture(STANDARD);
    const before = withoutEmptyTables(await rules());
    // The mangle table is written first; the unknown group makes the nat table fail.
    const broken: GivenOptions = { ...STANDARD, dropInvalid: true, proxyGid: "no-such-group" };
    await assert.rejects(capture(broken), { code: "CAPTURE_FAILED", message: /no-such-group|line \d+/ });
    assert.equal(withoutEmptyTables(await rules()), before);
  });
});

async function makeNamespaces(): Promise<void> {
  const lines = [
    `netns add ${pod}`,
    `netns add ${peer}`,
    `link add eth0 netns ${pod} type veth peer name eth0 netns ${peer}`,
    ...[pod, peer].flatMap((name) => [`-n ${name} link set lo up`, `-n ${name} link set eth0 up`]),
    `-n ${pod} address add ${POD}/24 dev eth0`,
    `-n ${pod} address add fd77::1/64 dev eth0 nodad`,
    `-n ${pod} route add default via ${PEER}`,
    `-n ${peer} address add ${PEER}/24 dev eth0`,
  ];
  for (const line of lines) await exec("ip", line.split(" "));
}

/** Serves names over HTTP, and as the agent does DNS, until killed. */
async function serve(name: string, folder: string, ports: Readonly<Record<number, string>>): Promise<ChildProcess> {
  const program = join(folder, `${name}.mjs`);
  await writeFile(
    program,
    `import http from "node:http"; import net from "node:net"; import dgram from "node:dgram"; import { once } from "node:events";
// As the proxy's user, whose DNS answers have a conntrack zone of their own; now, because the user may not read Node itself.
process.setgroups([]);
process.setgid(1337);
process.setuid(1337);
for (const [port, name] of Object.entries(${JSON.stringify(ports)})) {
  await once(http.createServer((_, response) => response.end(name)).listen(Number(port), "0.0.0.0"), "listening");
}
await once(net.createServer((socket) => socket.end("agent")).listen(15053, "127.0.0.1"), "listening");
// A redirected query goes to 127.0.0.1, and its answer must come from there.
const udp = dgram.createSocket("udp4", (_, from) => udp.send("agent", from.port, from.address)).bind(15053, "127.0.0.1");
await once(udp, "listening");
console.log("ready");`,
  );
  const child = spawn("ip", ["netns", "exec", name, process.execPath, program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  return child;
}

/** What answers at an address, called from a namespace as a user. */
async function call(from: string, address: string, uid = 65534): Promise<string> {
  const user = ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"];
  const curl = ["curl", "-s", "--noproxy", "*", "--max-time", "5", `http://${address}/`];
  return (await exec("ip", ["netns", "exec", from, ...user, ...curl])).stdout;
}

/** First bytes that come back from the name server; empty when nobody answers. */
async function ask(protocol: "udp" | "tcp", uid: number): Promise<string> {
  const user = ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"];
  const script = `exec 3<>/dev/${protocol}/${NAME_SERVER}/53; echo query >&3; head -c 5 <&3`;
  const shell = ["timeout", uid === 1337 ? "0.3" : "5", "bash", "-c", script];
  const { stdout } = await exec("ip", ["netns", "exec", pod, ...user, ...shell]).catch(() => ({ stdout: "" }));
  return stdout;
}

/** Tables that only have their built-in chains: whether they show up depends on who touched them before. */
function withoutEmptyTables(saved: string): string {
  return saved
    .split(/^COMMIT\n/m)
    .filter((table) => table.split("\n").some((line) => line.startsWith("-A") || / - /.test(line)))
    .sort()
    .join("");
}

function timeless(saved: string): string {
  return saved.replaceAll(/^#.*\n/gm, "");
}
