import assert from "node:assert/strict";
import { test } from "node:test";
import { captureRules } from "../rules/capture-rules.ts";
import { type GivenOptions, readOptions } from "../settings/options.ts";
import { parseCaptureSettings } from "../settings/settings.ts";
import type { Packet } from "./packet.ts";
import { walk } from "./walk.ts";

const STANDARD: GivenOptions = { inboundPorts: "*", inboundPortsExcluded: "15090,15021,15020", outboundRanges: "*" };
const AROUND = { ipv6: true, dnsServers: { v4: ["10.96.0.10"], v6: [] }, proxyUid: "1337" };

const OUTBOUND: Packet = {
  family: "v4",
  direction: "outbound",
  protocol: "tcp",
  source: undefined,
  sourcePort: undefined,
  destination: "10.0.0.5",
  port: 443,
  toSelf: false,
  interface: "eth0",
  owner: { uid: 1000, gid: 1000 },
  state: "NEW",
};
const INBOUND: Packet = { ...OUTBOUND, direction: "inbound", port: 8080, toSelf: true, owner: undefined };

function walkWith(given: GivenOptions, packet: Packet) {
  const { value: settings } = parseCaptureSettings(readOptions({ ...STANDARD, ...given }, {}).options, AROUND);
  assert.ok(settings);
  return walk(captureRules(settings, packet.family), packet);
}

function endOf(given: GivenOptions, packet: Packet) {
  return walkWith(given, packet).end;
}

test("walk() names the rules in order, with the jumps between them", () => {
  const { steps, end } = walkWith({}, OUTBOUND);
  assert.deepEqual(end, { kind: "captured", port: 15001, by: "redirect" });
  assert.deepEqual(
    steps.map(({ table, chain, target }) => `${table} ${chain} ${target.kind}`),
    ["nat OUTPUT jump", "nat ISTIO_OUTPUT jump", "nat ISTIO_REDIRECT redirect"],
  );
});

test("walk() comes back from a chain that returns or has no more rules", () => {
  const udp = walkWith({}, { ...OUTBOUND, protocol: "udp" });
  assert.deepEqual(udp.end, { kind: "out", interface: "eth0" });
  assert.equal(udp.steps.at(-1)?.target.kind, "jump");
  assert.deepEqual(endOf({ outboundPortsExcluded: "443" }, OUTBOUND), { kind: "out", interface: "eth0" });
});

test("walk() sends the proxy out, and its calls to its own pod back in", () => {
  const proxy = { ...OUTBOUND, owner: { uid: 1337, gid: 1337 } };
  assert.deepEqual(endOf({}, proxy), { kind: "out", interface: "eth0" });
  const toSelf = { ...proxy, toSelf: true, interface: "lo" };
  assert.deepEqual(endOf({}, toSelf), { kind: "captured", port: 15006, by: "redirect" });
  assert.deepEqual(endOf({}, { ...toSelf, destination: "127.0.0.1" }), { kind: "local", port: 443 });
});

test("walk() does not ask the nat table about packets that do not begin a connection", () => {
  const known = walkWith({ mode: "TPROXY" }, { ...INBOUND, state: "ESTABLISHED" });
  assert.deepEqual(known.end, { kind: "local", port: 8080 });
  assert.deepEqual(
    known.steps.map(({ chain }) => chain),
    ["PREROUTING", "ISTIO_INBOUND", "ISTIO_DIVERT", "ISTIO_DIVERT"],
  );
  assert.deepEqual(endOf({}, { ...OUTBOUND, state: "ESTABLISHED" }), { kind: "out", interface: "eth0" });
});

test("walk() drops what conntrack cannot place, when told to", () => {
  const invalid: Packet = { ...INBOUND, state: "INVALID" };
  assert.deepEqual(endOf({ dropInvalid: true }, invalid), { kind: "dropped" });
  assert.deepEqual(endOf({}, invalid), { kind: "local", port: 8080 });
});

test("walk() hands inbound connections to a socket in TPROXY mode", () => {
  assert.deepEqual(endOf({ mode: "TPROXY" }, INBOUND), { kind: "captured", port: 15006, by: "tproxy" });
  assert.deepEqual(endOf({ mode: "TPROXY" }, { ...INBOUND, port: 15021 }), { kind: "local", port: 15021 });
});

test("walk() knows interfaces by the beginning of their name", () => {
  const given: GivenOptions = { excludedInterfaces: "eth+" };
  assert.deepEqual(endOf(given, INBOUND), { kind: "local", port: 8080 });
  assert.deepEqual(endOf(given, { ...INBOUND, interface: "net1" }), { kind: "captured", port: 15006, by: "redirect" });
});

test("walk() takes what a virtual machine sends for outbound, and the rest past the pod", () => {
  const fromMachine: Packet = { ...INBOUND, interface: "tap0", toSelf: false };
  const given: GivenOptions = { virtualInterfaces: "tap0" };
  assert.deepEqual(endOf(given, fromMachine), { kind: "captured", port: 15001, by: "redirect" });
  assert.deepEqual(endOf(given, { ...fromMachine, protocol: "udp" }), { kind: "forwarded" });
});

test("walk() finds nothing to apply where there are no rules", () => {
  assert.deepEqual(walk([], { ...OUTBOUND, family: "v6", destination: "fd00::5" }), {
    steps: [],
    end: { kind: "out", interface: "eth0" },
  });
});
