import assert from "node:assert/strict";
import { test } from "node:test";
import { drops, fromInterface, jumps, returns, TCP, to, toInterface, toPort } from "../rules/spec.ts";
import { mangle, nat, type RuleSpec } from "../settings/rule.ts";
import { formatNftRule, formatRemoval, formatRuleset, NFT_TABLES } from "./ruleset.ts";

const both = { family: undefined };

function inbound(spec: RuleSpec): string {
  return formatNftRule({ ...nat.append("ISTIO_INBOUND", spec, "test"), ...both });
}

test("formatRuleset() makes every chain that is used or jumped to, in the order of the table", () => {
  const rules = [
    { ...mangle.append("PREROUTING", jumps("ISTIO_DROP"), "test"), ...both },
    { ...nat.append("OUTPUT", jumps("ISTIO_OUTPUT"), "test"), ...both },
  ];
  assert.deepEqual(formatRuleset(rules), [
    "add table inet istio-proxy-nat",
    "flush table inet istio-proxy-nat",
    "add chain inet istio-proxy-nat output { type nat hook output priority -100 ; }",
    "add chain inet istio-proxy-nat istio-output",
    "add rule inet istio-proxy-nat output counter jump istio-output",
    "add table inet istio-proxy-mangle",
    "flush table inet istio-proxy-mangle",
    "add chain inet istio-proxy-mangle prerouting { type filter hook prerouting priority -150 ; }",
    "add chain inet istio-proxy-mangle istio-drop",
    "add rule inet istio-proxy-mangle prerouting counter jump istio-drop",
  ]);
});

test("formatRuleset() inserts only before a rule that is there", () => {
  const at = (position: number) => ({
    ...mangle.insert({ chain: "ISTIO_INBOUND", position }, drops(), "test"),
    ...both,
  });
  const lines = formatRuleset([at(2), at(1), at(2), at(4)]).filter((line) => line.includes(" rule "));
  const place = "rule inet istio-proxy-mangle istio-inbound";
  assert.deepEqual(lines, [
    `add ${place} counter drop`,
    `insert ${place} index 0 counter drop`,
    `insert ${place} index 1 counter drop`,
    `add ${place} counter drop`,
  ]);
});

test("formatRuleset() of no rules is empty, and formatRemoval() names every table", () => {
  assert.deepEqual(formatRuleset([]), []);
  assert.equal(formatRemoval().length, 2 * NFT_TABLES.length);
});

test("formatNftRule() writes ranges of ports and wildcards of interfaces as nft has them", () => {
  assert.equal(inbound(returns(TCP, toPort({ from: 80, to: 90 }))), "meta l4proto tcp tcp dport 80-90 counter return");
  assert.equal(inbound(returns(fromInterface("eth+"))), 'iifname "eth*" counter return');
  assert.equal(inbound(returns(toInterface("4g@x"))), 'oifname "4g@x" counter return');
});

test("formatNftRule() tells the families apart by name", () => {
  const rule = nat.append("ISTIO_OUTPUT", returns(to("fd00::/8")), "test");
  assert.equal(formatNftRule({ ...rule, family: "v6" }), "ip6 daddr fd00::/8 counter return");
});
