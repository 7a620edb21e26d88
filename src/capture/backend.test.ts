import assert from "node:assert/strict";
import { test } from "node:test";
import { backendsToClean, detectBackend, forcedBackend, missingBackend } from "./backend.ts";
import type { CommandResult, Commands } from "./commands.ts";

/** A machine with these programs and what they print. */
function machine(programs: Readonly<Record<string, string | CommandResult>>): Commands {
  return {
    run: (command) => {
      const found = programs[command];
      if (found === undefined) return Promise.resolve({ code: 127, stdout: "", stderr: "" });
      return Promise.resolve(typeof found === "string" ? { code: 0, stdout: found, stderr: "" } : found);
    },
  };
}

const EMPTY_TABLE = "*nat\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n";
const FOREIGN = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j DROP\nCOMMIT\n";
const OURS = "*nat\n:ISTIO_OUTPUT - [0:0]\nCOMMIT\n";

async function chosen(programs: Readonly<Record<string, string>>): Promise<string | undefined> {
  return (await detectBackend(machine(programs), "v4"))?.save;
}

test("detectBackend() prefers nft, unless rules live in legacy", async () => {
  assert.equal(await chosen({ "iptables-nft-save": "", "iptables-legacy-save": EMPTY_TABLE }), "iptables-nft-save");
  assert.equal(await chosen({ "iptables-nft-save": "", "iptables-legacy-save": FOREIGN }), "iptables-legacy-save");
});

test("detectBackend() stays where our rules are", async () => {
  assert.equal(await chosen({ "iptables-nft-save": OURS, "iptables-legacy-save": FOREIGN }), "iptables-nft-save");
});

test("detectBackend() takes the plain program when it is the only one", async () => {
  assert.equal(await chosen({ "iptables-save": "" }), "iptables-save");
  assert.equal(await chosen({ "ip6tables-save": "" }), undefined);
});

test("backendsToClean() are all that hold our rules", async () => {
  const both = machine({ "ip6tables-nft-save": OURS, "ip6tables-legacy-save": OURS, "ip6tables-save": OURS });
  const names = (await backendsToClean(both, "v6")).map((backend) => backend.restore);
  assert.deepEqual(names, ["ip6tables-nft-restore", "ip6tables-legacy-restore"]);
  assert.deepEqual(await backendsToClean(machine({ "ip6tables-nft-save": FOREIGN }), "v6"), []);
});

test("forcedBackend() is the one asked for, or none", async () => {
  const commands = machine({ "iptables-nft-save": "" });
  assert.equal((await forcedBackend(commands, "v4", "nft"))?.restore, "iptables-nft-restore");
  assert.equal(await forcedBackend(commands, "v4", "legacy"), undefined);
});

test("missingBackend() says what is missing and how to get it", async () => {
  const text = async (programs: Readonly<Record<string, CommandResult>>) =>
    (await missingBackend(machine(programs))).message;
  const failed = (stderr: string) => ({ "iptables-save": { code: 4, stdout: "", stderr } });
  assert.match(await text({}), /iptables-save is missing; install the package iptables$/);
  assert.match(await text(failed("Permission denied (you must be root)")), /needs root/);
  assert.match(await text(failed("protocol not supported")), /protocol not supported$/);
  assert.match(await text(failed("")), /iptables-save ended with code 4$/);
});
