import assert from "node:assert/strict";
import { test } from "node:test";
import { formatRule } from "../iptables/rule-text.ts";
import { type GivenOptions, readOptions } from "../settings/options.ts";
import { CHAINS, isBuiltInChain, type Rule } from "../settings/rule.ts";
import { type CaptureSettings, parseCaptureSettings, type Surroundings } from "../settings/settings.ts";
import { captureRules } from "./capture-rules.ts";

const BOTH: Surroundings = { ipv6: true, dnsServers: { v4: ["10.0.0.53"], v6: [] }, proxyUid: "1337" };

function settingsOf(given: GivenOptions, around: Surroundings): CaptureSettings {
  const { value, problems } = parseCaptureSettings(readOptions(given, {}).options, around);
  assert.ok(value, JSON.stringify(problems));
  return value;
}

function lines(rules: readonly Rule[], table: string): readonly string[] {
  return rules.filter((rule) => rule.table === table).map(formatRule);
}

test("captureRules() writes the rules of an injected pod", () => {
  const settings = settingsOf(
    { inboundPorts: "*", inboundPortsExcluded: "15090,15021", outboundRanges: "*" },
    { ...BOTH, ipv6: false },
  );
  assert.deepEqual(captureRules(settings, "v6"), []);
  assert.deepEqual(captureRules(settings, "v4").map(formatRule), [
    "-A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN",
    "-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001",
    "-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006",
    "-A PREROUTING -p tcp -j ISTIO_INBOUND",
    "-A ISTIO_INBOUND -p tcp --dport 15090 -j RETURN",
    "-A ISTIO_INBOUND -p tcp --dport 15021 -j RETURN",
    "-A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT",
    "-A OUTPUT -j ISTIO_OUTPUT",
    "-A ISTIO_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN",
    "-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT",
    "-A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN",
    "-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN",
    "-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT",
    "-A ISTIO_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN",
    "-A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN",
    "-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN",
    "-A ISTIO_OUTPUT -j ISTIO_REDIRECT",
  ]);
});

test("captureRules() gives each DNS server to the family it belongs to", () => {
  const settings = settingsOf({ redirectDns: true }, BOTH);
  const redirects = (family: "v4" | "v6") =>
    lines(captureRules(settings, family), "nat").filter((line) => line.includes("15053"));
  assert.deepEqual(redirects("v4"), [
    "-A ISTIO_OUTPUT_DNS -p tcp --dport 53 -d 10.0.0.53/32 -j REDIRECT --to-ports 15053",
    "-A ISTIO_OUTPUT_DNS -p udp --dport 53 -d 10.0.0.53/32 -j REDIRECT --to-port 15053",
  ]);
  assert.deepEqual(redirects("v6"), []);
});

test("captureRules() keeps loopback calls capturable when a loopback range is captured", () => {
  const settings = settingsOf({ outboundRanges: "127.0.0.5/32" }, BOTH);
  const exempt = captureRules(settings, "v4").filter((rule) => formatRule(rule).includes("-o lo -m owner ! "));
  assert.deepEqual(exempt, []);
});

test("captureRules() captures by TPROXY in the mangle table", () => {
  const settings = settingsOf({ mode: "TPROXY", inboundPorts: "8080" }, BOTH);
  assert.deepEqual(lines(captureRules(settings, "v6"), "mangle").slice(0, 6), [
    "-A ISTIO_DIVERT -j MARK --set-mark 1337",
    "-A ISTIO_DIVERT -j ACCEPT",
    "-A ISTIO_TPROXY ! -d ::1/128 -p tcp -j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006",
    "-A PREROUTING -p tcp -j ISTIO_INBOUND",
    "-A ISTIO_INBOUND -p tcp --dport 8080 -m conntrack --ctstate RELATED,ESTABLISHED -j ISTIO_DIVERT",
    "-A ISTIO_INBOUND -p tcp --dport 8080 -j ISTIO_TPROXY",
  ]);
});

test("captureRules() says of every rule what it is for, and knows every chain it uses", () => {
  const given = { mode: "TPROXY", inboundPorts: "*", outboundRanges: "*", excludedInterfaces: "eth1" } as const;
  const more = { virtualInterfaces: "tap0", redirectDns: true, captureAllDns: true, dropInvalid: true } as const;
  for (const rule of captureRules(settingsOf({ ...given, ...more }, BOTH), "v4")) {
    assert.notEqual(rule.why, "", formatRule(rule));
    assert.ok(isBuiltInChain(rule.chain) || CHAINS.some((chain) => chain === rule.chain), rule.chain);
  }
});
