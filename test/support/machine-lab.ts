/**
 * A machine and a world of its own for tests of what goes out: two network namespaces, one that plays the machine, one that
 * plays the world outside, with a web server and a name server in it. Nothing of the real machine is touched.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { runCommand } from "#standalone/host/command.ts";

const ROOT = resolve(import.meta.dirname, "../..");

/** Knows all names under example.test and example.com but those that begin with "no", and tells its callers their address. */
const WORLD = `const dns = require("dns-packet"), udp = require("node:dgram").createSocket("udp4");
udp.on("message", (query, peer) => {
  const { id, questions } = dns.decode(query);
  const [{ name, type }] = questions;
  const known = /\\.example\\.(test|com)$/.test(name) && !name.startsWith("no");
  const answers = known && type === "A" ? [{ type, name, ttl: 5, data: "203.0.113.2" }] : [];
  const flags = dns.RECURSION_AVAILABLE | (known ? 0 : 3);
  udp.send(dns.encode({ type: "response", id, flags, questions, answers }), peer.port, peer.address);
});
udp.bind(53, "203.0.113.2", () => require("node:http")
  .createServer((call, answer) => answer.end("outside sees " + call.socket.remoteAddress))
  .listen(80, "203.0.113.2", () => console.log("up")));`;

export interface MachineLab extends AsyncDisposable {
  /** Runs a program on the machine. */
  run(...argv: readonly string[]): Promise<string>;
  /** All of the machine's network that a way out could change. */
  state(): Promise<string>;
}

/** Files of its own go into the folder. */
export async function machineLab(folder: string): Promise<MachineLab> {
  const id = randomBytes(3).toString("hex");
  const [machine, world] = [`lab-${id}-machine`, `lab-${id}-world`];
  const resolvConf = join(folder, "resolv.conf");
  await writeFile(resolvConf, "nameserver 203.0.113.2\n");
  const lines = [
    ...[`netns add ${machine}`, `netns add ${world}`],
    `link add up0 netns ${machine} type veth peer name up0 netns ${world}`,
    ...[machine, world].flatMap((netns, i) => [
      `-n ${netns} addr add 203.0.113.${i + 1}/24 dev up0`,
      ...["lo", "up0"].map((name) => `-n ${netns} link set ${name} up`),
    ]),
  ];
  for (const line of lines) await runCommand({ argv: ["ip", ...line.split(" ")] });
  const inWorld = ["nsenter", `--net=/run/netns/${world}`, process.execPath, "-e", WORLD];
  const inMachine = ["nsenter", `--net=/run/netns/${machine}`, "unshare", "--mount", "sh", "-c"];
  const [server, holder] = await Promise.all([
    started(inWorld),
    started([...inMachine, 'mount --bind "$1" /etc/resolv.conf; echo; exec cat', "sh", resolvConf]),
  ]);
  const run = (...argv: readonly string[]) =>
    runCommand({ argv: ["nsenter", `--target=${holder.pid}`, "--mount", "--net", "--wd", "--", ...argv], cwd: ROOT });
  return {
    run,
    async state() {
      const forwarding = 'for file in /proc/sys/net/ipv4/conf/*/forwarding; do echo "$file $(cat "$file")"; done';
      const script = `nft list ruleset; iptables-save | grep -v "^#"; ip -brief link; ip -brief addr; ip route; ${forwarding}`;
      return run("sh", "-c", script);
    },
    async [Symbol.asyncDispose]() {
      server.kill("SIGKILL");
      holder.kill("SIGKILL");
      for (const netns of [machine, world]) await runCommand({ argv: ["ip", "netns", "del", netns] });
    },
  };
}

/** A process that has said something. */
async function started([program = "", ...args]: readonly string[]): Promise<ChildProcess> {
  const child = spawn(program, args, { cwd: ROOT, stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return child;
}
