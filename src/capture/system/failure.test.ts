import assert from "node:assert/strict";
import { test } from "node:test";
import { failure } from "./failure.ts";

function text(program: string, stderr: string, more: { readonly code?: number; readonly input?: string } = {}): string {
  return failure("Cannot apply", { program, stderr, stdout: "", code: 2, ...more }).message;
}

test("failure() says which package has a missing program", () => {
  const missing = (program: string) => text(program, "", { code: 127 });
  assert.equal(missing("nft"), "Cannot apply: the program nft is missing; install the package nftables");
  assert.match(missing("ip6tables-restore"), /install the package iptables$/);
  assert.match(missing("ip"), /install the package iproute2$/);
  assert.equal(failure("x", { program: "nft", stderr: "", stdout: "", code: 127 }).code, "IPTABLES_MISSING");
  assert.equal(failure("x", { program: "nft", stderr: "", stdout: "", code: 1 }).code, "CAPTURE_FAILED");
});

test("failure() says which rights are missing", () => {
  for (const words of [
    "iptables-nft-save v1.8.9 (nf_tables): Could not fetch rule set generation id: Permission denied (you must be root)",
    "RTNETLINK answers: Operation not permitted",
    "iptables-restore v1.8.9 (legacy): iptables-restore: unable to initialize table 'nat'",
  ]) {
    assert.match(text("iptables-save", words), /^Cannot apply: needs root or the capabilities NET_ADMIN and NET_RAW/);
  }
});

test("failure() says that somebody holds the lock", () => {
  const words =
    "Another app is currently holding the xtables lock; still 1s 0us time ahead to have a chance to grab the lock...";
  assert.match(
    text("iptables-legacy-restore", words),
    /another process held the lock of iptables for 30 s: Another app/,
  );
});

test("failure() says that the kernel lacks a module", () => {
  for (const words of [
    "iptables-restore v1.8.9 (legacy): Couldn't load target `TPROXY':No such file or directory; missing kernel module?",
    "iptables v1.8.9 (legacy): can't initialize iptables table `nat': Table does not exist (do you need to insmod?)",
    "iptables-restore: line 3 failed: No chain/target/match by that name.",
    "iptables-nft-restore v1.8.9 (nf_tables): \nline 3: RULE_APPEND failed (No such file or directory): rule in chain A",
    "/dev/stdin:3:1-9: Error: Could not process rule: No such file or directory",
  ]) {
    assert.match(text("iptables-restore", words), /^Cannot apply: the kernel lacks a module that the rules need: /);
  }
});

test("failure() shows the line that a program names, but not the end of a table", () => {
  const input = "* mangle\n-A OUTPUT -j TPROXY\nCOMMIT\n";
  assert.match(
    text("iptables-restore", "line 2 failed", { input }),
    /^Cannot apply: line 2 failed; this is "-A OUTPUT -j TPROXY"$/,
  );
  assert.equal(text("iptables-restore", "line 3 failed", { input }), "Cannot apply: line 3 failed");
  assert.equal(text("iptables-restore", "line 9 failed", { input }), "Cannot apply: line 9 failed");
});

test("failure() of a silent program has its exit code", () => {
  assert.equal(text("ip", ""), "Cannot apply: ip ended with code 2");
});
