import assert from "node:assert/strict";
import { test } from "node:test";
import { readMachine } from "./machine.ts";
import type { Commands } from "./system/commands.ts";

const OURS = "*nat\n:ISTIO_OUTPUT - [0:0]\nCOMMIT\n";

/** A machine with these programs and what they print; all others are missing. */
function programs(printed: Readonly<Record<string, string>>): Commands {
  return {
    run: (command) => {
      const stdout = printed[command];
      return Promise.resolve(
        stdout === undefined ? { code: 127, stdout: "", stderr: "" } : { code: 0, stdout, stderr: "" },
      );
    },
  };
}

test("readMachine() is content without ip6tables and without nft", async () => {
  const { backends, nftListing } = await readMachine(programs({ "iptables-nft-save": "" }));
  assert.deepEqual(
    backends.map(({ backend }) => backend.save),
    ["iptables-nft-save"],
  );
  assert.equal(nftListing, undefined);
});

test("readMachine() says which program is missing", async () => {
  await assert.rejects(readMachine(programs({ nft: "" })), {
    code: "IPTABLES_MISSING",
    message: /the program iptables-save is missing; install the package iptables$/,
  });
  await assert.rejects(readMachine(programs({ "iptables-nft-save": "" }), { kind: "legacy" }), {
    code: "IPTABLES_MISSING",
    message: /the program iptables-legacy-save is missing/,
  });
  await assert.rejects(readMachine(programs({ "iptables-nft-save": "" }), { dialect: "nftables" }), {
    code: "IPTABLES_MISSING",
    message: "Cannot read the rules with nft: the program nft is missing; install the package nftables",
  });
});

test("readMachine() for nftables knows iptables only where old rules are", async () => {
  const commands = programs({ nft: "", "iptables-nft-save": OURS, "ip6tables-nft-save": "" });
  const { backends } = await readMachine(commands, { dialect: "nftables" });
  assert.deepEqual(
    backends.map(({ backend, stale }) => [backend.save, stale]),
    [["iptables-nft-save", true]],
  );
});

test("readMachine() for cleaning is content with either", async () => {
  assert.equal((await readMachine(programs({ nft: "" }), { cleanup: true })).nftListing, "");
  assert.equal((await readMachine(programs({ "iptables-save": "" }), { cleanup: true })).backends.length, 1);
  await assert.rejects(readMachine(programs({}), { cleanup: true }), { code: "IPTABLES_MISSING" });
});
