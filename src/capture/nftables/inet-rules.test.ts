import assert from "node:assert/strict";
import { test } from "node:test";
import { type GivenOptions, readOptions } from "../settings/options.ts";
import { parseCaptureSettings } from "../settings/settings.ts";
import { inetRules } from "./inet-rules.ts";
import { formatNftRule } from "./ruleset.ts";

/** Rules of one chain in the words of nft. */
function chain(name: string, given: GivenOptions, dns: Readonly<Record<"v4" | "v6", readonly string[]>>): string[] {
  const around = { ipv6: true, dnsServers: dns, proxyUid: "1337" };
  const { value, problems } = parseCaptureSettings(readOptions(given, {}).options, around);
  assert.ok(value, JSON.stringify(problems));
  return inetRules(value)
    .filter((rule) => rule.chain === name)
    .map(formatNftRule);
}

const NO_SERVERS = { v4: [], v6: [] };

test("inetRules() has a rule without addresses once, and IPv4 before IPv6 where addresses differ", () => {
  const rules = chain("ISTIO_OUTPUT", { outboundRanges: "10.0.0.0/8,fd00::/8,10.1.0.0/16", proxyGid: "7" }, NO_SERVERS);
  assert.deepEqual(rules, [
    "oifname lo ip saddr 127.0.0.6/32 counter return",
    "oifname lo ip6 saddr ::6/128 counter return",
    "oifname lo meta l4proto tcp ip daddr != 127.0.0.1/32 tcp dport != 15008 skuid 1337 counter jump istio-in-redirect",
    "oifname lo meta l4proto tcp ip6 daddr != ::1/128 tcp dport != 15008 skuid 1337 counter jump istio-in-redirect",
    "oifname lo skuid != 1337 counter return",
    "skuid 1337 counter return",
    "oifname lo meta l4proto tcp ip daddr != 127.0.0.1/32 tcp dport != 15008 skgid 7 counter jump istio-in-redirect",
    "oifname lo meta l4proto tcp ip6 daddr != ::1/128 tcp dport != 15008 skgid 7 counter jump istio-in-redirect",
    "oifname lo skgid != 7 counter return",
    "skgid 7 counter return",
    "ip daddr 127.0.0.1/32 counter return",
    "ip6 daddr ::1/128 counter return",
    "ip daddr 10.0.0.0/8 counter jump istio-redirect",
    "ip daddr 10.1.0.0/16 counter jump istio-redirect",
    "ip6 daddr fd00::/8 counter jump istio-redirect",
  ]);
});

test("inetRules() leads queries to the agent when only one family has a name server", () => {
  const servers = { v4: [], v6: ["fd00::53"] };
  const output = chain("ISTIO_OUTPUT", { redirectDns: true }, servers);
  assert.equal(output.filter((rule) => rule === "counter jump istio-output-dns").length, 1);
  assert.deepEqual(chain("PREROUTING", { redirectDns: true }, servers), ["counter jump istio-inbound"]);
});

test("inetRules() drops invalid packets of TCP alone", () => {
  assert.deepEqual(chain("PREROUTING", { dropInvalid: true }, NO_SERVERS), [
    "meta l4proto tcp ct state invalid counter jump istio-drop",
  ]);
});
