import assert from "node:assert/strict";
import { test } from "node:test";
import { drops, fromInterface, jumps, returns } from "../rules/spec.ts";
import { mangle, nat } from "../settings/rule.ts";
import { formatCommands, formatRestore } from "./restore.ts";
import { ruleLine } from "./rule-text.ts";

const RULES = [
  nat.append("OUTPUT", jumps("ISTIO_OUTPUT"), "entry"),
  nat.insert({ chain: "PREROUTING", position: 1 }, jumps("ISTIO_REDIRECT", fromInterface("eth1")), "virtual machine"),
  nat.append("ISTIO_OUTPUT", returns(), "end"),
  mangle.append("ISTIO_DROP", drops(), "invalid"),
].map(ruleLine);

test("formatRestore() has a section per table, which makes every chain before it is used", () => {
  assert.equal(
    formatRestore(RULES),
    `* mangle
-N ISTIO_DROP
-A ISTIO_DROP -j DROP
COMMIT
* nat
-N ISTIO_OUTPUT
-N ISTIO_REDIRECT
-A OUTPUT -j ISTIO_OUTPUT
-I PREROUTING 1 -i eth1 -j ISTIO_REDIRECT
-A ISTIO_OUTPUT -j RETURN
COMMIT
`,
  );
});

test("formatRestore() of no rules is empty", () => {
  assert.equal(formatRestore([]), "");
});

test("formatCommands() makes chains first, then rules in order", () => {
  assert.deepEqual(formatCommands(RULES), [
    "-t nat -N ISTIO_OUTPUT",
    "-t mangle -N ISTIO_DROP",
    "-t nat -A OUTPUT -j ISTIO_OUTPUT",
    "-t nat -I PREROUTING 1 -i eth1 -j ISTIO_REDIRECT",
    "-t nat -A ISTIO_OUTPUT -j RETURN",
    "-t mangle -A ISTIO_DROP -j DROP",
  ]);
});
