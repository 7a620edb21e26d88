import assert from "node:assert/strict";
import { test } from "node:test";
import { reconcile } from "./reconcile.ts";
import type { RuleLine } from "./rule-text.ts";
import { parseSaved } from "./saved.ts";

const WANTED = [
  appended("OUTPUT", "-j ISTIO_OUTPUT"),
  appended("ISTIO_OUTPUT", "-d 127.0.0.1/32 -j RETURN"),
  appended("ISTIO_OUTPUT", "-p tcp --dport 80 -j RETURN"),
];

function appended(chain: string, spec: string): RuleLine {
  return { table: "nat", chain, position: undefined, spec };
}

const IN_PLACE = `*nat
:OUTPUT ACCEPT [0:0]
:ISTIO_OUTPUT - [0:0]
-A OUTPUT -d 1.2.3.4/32 -j ACCEPT
-A OUTPUT -j ISTIO_OUTPUT
-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN
-A ISTIO_OUTPUT -p tcp -m tcp --dport 80 -j RETURN
COMMIT
`;

test("reconcile() adds all to an empty namespace", () => {
  const { residue, inPlace, text } = reconcile(parseSaved(""), WANTED);
  assert.deepEqual([residue, inPlace], [false, false]);
  assert.match(text, /^\* nat\n-N ISTIO_OUTPUT\n-A OUTPUT -j ISTIO_OUTPUT\n/);
});

test("reconcile() sees that the rules are in place beside those of others", () => {
  assert.equal(reconcile(parseSaved(IN_PLACE), WANTED).inPlace, true);
});

const DRIFTS: readonly (readonly [string, string])[] = [
  ["a missing rule", IN_PLACE.replace(/-A ISTIO_OUTPUT -d .*\n/, "")],
  ["a missing jump", IN_PLACE.replace("-A OUTPUT -j ISTIO_OUTPUT\n", "")],
  ["a rule too many", IN_PLACE.replace("COMMIT", "-A ISTIO_OUTPUT -j RETURN\nCOMMIT")],
  ["a jump made twice", IN_PLACE.replace("COMMIT", "-A OUTPUT -j ISTIO_OUTPUT\nCOMMIT")],
  ["a chain too many", IN_PLACE.replace(":ISTIO_OUTPUT", ":ISTIO_REDIRECT - [0:0]\n:ISTIO_OUTPUT")],
  ["rules in another order", IN_PLACE.replace(/(-A ISTIO_OUTPUT -d .*\n)(-A ISTIO_OUTPUT -p .*\n)/, "$2$1")],
  ["a table too many", `${IN_PLACE}*raw\n:ISTIO_INBOUND - [0:0]\nCOMMIT\n`],
];

for (const [name, saved] of DRIFTS) {
  test(`reconcile() sees ${name}`, () => {
    assert.equal(reconcile(parseSaved(saved), WANTED).inPlace, false);
  });
}

test("reconcile() removes jumps before chains, ours only, and then adds what is wanted", () => {
  const { text } = reconcile(parseSaved(IN_PLACE), WANTED.slice(0, 2));
  assert.equal(
    text,
    `* nat
-D OUTPUT -j ISTIO_OUTPUT
-F ISTIO_OUTPUT
-X ISTIO_OUTPUT
-N ISTIO_OUTPUT
-A OUTPUT -j ISTIO_OUTPUT
-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN
COMMIT
`,
  );
});

test("reconcile() to nothing removes only what is ours", () => {
  const saved = `*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:CUSTOM - [0:0]
:ISTIO_PRERT - [0:0]
:ISTIO_INBOUND - [0:0]
-A PREROUTING -j ISTIO_PRERT
-A PREROUTING -i tap0 -d 10.0.0.0/8 -j ISTIO_REDIRECT
-A PREROUTING -i tap0 -j RETURN
-A PREROUTING -i eth1 -j RETURN
-A PREROUTING -i eth2 -j RETURN
-A OUTPUT -o eth1 -j RETURN
-A OUTPUT -o eth3 -j RETURN
-A CUSTOM -p tcp -j ISTIO_INBOUND
-A CUSTOM -j ACCEPT
COMMIT
`;
  const { residue, text } = reconcile(parseSaved(saved), []);
  assert.equal(residue, true);
  assert.equal(
    text,
    `* nat
-D PREROUTING -i tap0 -d 10.0.0.0/8 -j ISTIO_REDIRECT
-D PREROUTING -i tap0 -j RETURN
-D PREROUTING -i eth1 -j RETURN
-D OUTPUT -o eth1 -j RETURN
-D CUSTOM -p tcp -j ISTIO_INBOUND
-F ISTIO_INBOUND
-X ISTIO_INBOUND
COMMIT
`,
  );
});

test("reconcile() knows the marks of TPROXY mode from those of others", () => {
  const mangle = (chains: string) =>
    parseSaved(`*mangle
:OUTPUT ACCEPT [0:0]
:ISTIO_INBOUND - [0:0]
-A OUTPUT -o lo -p tcp -m mark --mark 0x539 -j RETURN
-A OUTPUT ! -d 127.0.0.1/32 -o lo -p tcp -m owner --uid-owner 3 -j MARK --set-xmark 0x53a/0xffffffff
-A OUTPUT -p tcp -m connmark --mark 0x539 -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff
-A OUTPUT -p tcp -m connmark --mark 0x7 -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff
${chains}COMMIT
`);
  const removed = (chains: string) => reconcile(mangle(chains), []).text.match(/^-D .*$/gm) ?? [];
  assert.equal(removed("").length, 0);
  const ours = removed("-A ISTIO_INBOUND -p tcp -m mark --mark 0x539 -j RETURN\n");
  assert.equal(ours.length, 3);
  assert.ok(!ours.some((line) => line.includes("0x7")));
});

test("reconcile() takes known rules for ours though nothing marks them", () => {
  const saved = parseSaved("*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -i tap0 -j RETURN\nCOMMIT\n");
  const known = [{ ...appended("PREROUTING", "-i tap0 -j RETURN"), position: 1 }];
  assert.equal(reconcile(saved, []).text, "");
  assert.equal(reconcile(saved, [], known).text, "* nat\n-D PREROUTING -i tap0 -j RETURN\nCOMMIT\n");
  assert.equal(reconcile(saved, known).inPlace, true);
});

test("reconcile() in a namespace without our rules has nothing to remove", () => {
  const { residue, inPlace, text } = reconcile(
    parseSaved("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j DROP\nCOMMIT\n"),
    [],
  );
  assert.deepEqual({ residue, inPlace, text }, { residue: false, inPlace: true, text: "" });
});
