import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalNftRule, isListed, ownTables } from "./listing.ts";

const LISTING = `table inet firewall {
	chain input {
		type filter hook input priority 0; policy accept;
	}
}
table inet istio-proxy-nat {
	chain output {
		type nat hook output priority -100; policy accept;
		counter packets 3 bytes 180 jump istio-output
	}

	chain istio-output {
		oifname "lo" ip daddr != 127.0.0.1 tcp dport != { 53, 15008 } meta skuid 1337 counter packets 0 bytes 0 return
	}
}
`;
const TABLE = "inet istio-proxy-nat";
const COMMANDS = [
  `add table ${TABLE}`,
  `flush table ${TABLE}`,
  `add chain ${TABLE} output { type nat hook output priority -100 ; }`,
  `add chain ${TABLE} istio-output`,
  `add rule ${TABLE} istio-output oifname lo meta l4proto tcp ip daddr != 127.0.0.1/32 tcp dport != { 53, 15008 } skuid 1337 counter return`,
  `add rule ${TABLE} output counter jump istio-output`,
];

test("ownTables() finds our tables among others", () => {
  assert.deepEqual([...ownTables(LISTING).keys()], ["istio-proxy-nat"]);
  assert.match(ownTables(LISTING).get("istio-proxy-nat") ?? "", /^table inet istio-proxy-nat \{\n[\s\S]*\n\}\n$/);
});

test("isListed() sees that what is there is what is wanted", () => {
  assert.equal(isListed(ownTables(LISTING), COMMANDS), true);
  assert.equal(isListed(new Map(), []), true);
});

const DRIFTS: readonly (readonly [string, string])[] = [
  ["another port", LISTING.replace("15008", "15009")],
  ["another hook", LISTING.replace("-100", "-99")],
  [
    "a rule too many",
    LISTING.replace("\t\tcounter packets 3", "\t\tcounter packets 0 bytes 0 accept\n\t\tcounter packets 3"),
  ],
  ["a missing chain", LISTING.replace(/\tchain istio-output \{[\s\S]*?\n\t\}\n/, "")],
  ["a missing table", ""],
];

for (const [name, listing] of DRIFTS) {
  test(`isListed() sees ${name}`, () => {
    assert.equal(isListed(ownTables(listing), COMMANDS), false);
  });
}

test("isListed() counts an inserted rule where it goes", () => {
  const both = [...COMMANDS, `insert rule ${TABLE} output index 0 iifname eth0 counter return`];
  const inserted = LISTING.replace(
    "\t\tcounter packets 3",
    '\t\tiifname "eth0" counter packets 0 bytes 0 return\n\t\tcounter packets 3',
  );
  assert.equal(isListed(ownTables(inserted), both), true);
});

test("canonicalNftRule() takes all spellings of a rule for one", () => {
  const pairs = [
    ["meta l4proto tcp tcp dport 80 counter return", "tcp dport 80 counter packets 1 bytes 2 return"],
    ["mark 1337 counter ct mark set mark", "meta mark 0x00000539 counter packets 0 bytes 0 ct mark set meta mark"],
    ["ip daddr 10.1.2.3/8 counter return", "ip daddr 10.0.0.0/8 counter return"],
    ["ip6 saddr ::6/128 counter return", "ip6 saddr ::6 counter return"],
    ["ct state related,established counter accept", "ct state established,related counter accept"],
    ["iifname eth1 counter return", 'iifname "eth1" counter return'],
  ] as const;
  for (const [ours, listed] of pairs) assert.equal(canonicalNftRule(ours), canonicalNftRule(listed));
  assert.notEqual(canonicalNftRule("tcp dport 80 return"), canonicalNftRule("udp dport 80 return"));
});
