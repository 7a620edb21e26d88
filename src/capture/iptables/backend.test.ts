import assert from "node:assert/strict";
import { test } from "node:test";
import type { CommandResult, Commands } from "../system/commands.ts";
import { backendsWithOurs, findBackends, missingBackend, plainBackends } from "./backend.ts";

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

/** Programs in order: the one to use, then those with old rules of ours. */
async function names(programs: Readonly<Record<string, string>>, kind?: "nft" | "legacy"): Promise<readonly string[]> {
  return (await findBackends(machine(programs), "v4", kind)).map(({ backend, stale }) =>
    stale ? `${backend.save} (stale)` : backend.save,
  );
}

test("findBackends() prefers nft, unless rules live in legacy", async () => {
  assert.deepEqual(await names({ "iptables-nft-save": "", "iptables-legacy-save": EMPTY_TABLE }), [
    "iptables-nft-save",
  ]);
  assert.deepEqual(await names({ "iptables-nft-save": "", "iptables-legacy-save": FOREIGN }), ["iptables-legacy-save"]);
});

test("findBackends() stays where our rules are, and names the other when it has some too", async () => {
  assert.deepEqual(await names({ "iptables-nft-save": OURS, "iptables-legacy-save": FOREIGN }), ["iptables-nft-save"]);
  assert.deepEqual(await names({ "iptables-nft-save": OURS, "iptables-legacy-save": OURS }), [
    "iptables-nft-save",
    "iptables-legacy-save (stale)",
  ]);
});

test("findBackends() takes the plain program when it is the only one, and none when there is none", async () => {
  assert.deepEqual(await names({ "iptables-save": "" }), ["iptables-save"]);
  assert.deepEqual(await names({ "ip6tables-save": "" }), []);
});

test("findBackends() takes the one asked for, or none", async () => {
  assert.deepEqual(await names({ "iptables-nft-save": OURS, "iptables-legacy-save": "" }, "legacy"), [
    "iptables-legacy-save",
    "iptables-nft-save (stale)",
  ]);
  assert.deepEqual(await names({ "iptables-nft-save": "" }, "legacy"), []);
});

test("backendsWithOurs() are all that hold our rules", async () => {
  const both = machine({ "ip6tables-nft-save": OURS, "ip6tables-legacy-save": OURS, "ip6tables-save": OURS });
  const restores = (await backendsWithOurs(both, "v6")).map(({ backend }) => backend.restore);
  assert.deepEqual(restores, ["ip6tables-nft-restore", "ip6tables-legacy-restore"]);
  assert.deepEqual(await backendsWithOurs(machine({ "ip6tables-nft-save": FOREIGN }), "v6"), []);
});

test("plainBackends() says so when the rules cannot be read", async () => {
  const failed = { code: 4, stdout: "", stderr: "boom" };
  await assert.rejects(plainBackends(machine({ "iptables-save": failed })), {
    code: "CAPTURE_FAILED",
    message: "Cannot read the rules with iptables-save: boom",
  });
});

test("missingBackend() names the program that was asked for", async () => {
  const { message } = await missingBackend(machine({}), "legacy");
  assert.equal(
    message,
    "Cannot read the rules with iptables-legacy-save: the program iptables-legacy-save is missing; install the package iptables",
  );
});
