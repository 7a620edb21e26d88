/**
 * The walker against the kernel: random settings are applied in a real network namespace, random packets are sent through
 * it, and each must come out where the walker says. `CAPTURE_WALKS=500` tries more settings than the few of a usual run,
 * `CAPTURE_SEED=7` others.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { SILENT } from "#lib/log/log.ts";
import { type Arrival, BEHIND, type Order, PacketLab, type Place, POD } from "../../../test/support/packet-lab.ts";
import { applyCapture, cleanCapture } from "../apply.ts";
import { readMachine } from "../machine.ts";
import type { Dialect } from "../rules/family.ts";
import { type GivenOptions, readOptions } from "../settings/options.ts";
import type { Family } from "../settings/rule.ts";
import { type CaptureSettings, parseCaptureSettings, type Surroundings } from "../settings/settings.ts";
import { systemCommands } from "../system/commands.ts";
import { formatEndpoint, type Packet, sourceTowardsSelf } from "./packet.ts";
import { ruleBook } from "./rule-book.ts";
import { walk } from "./walk.ts";

const RUNS = Number(process.env.CAPTURE_WALKS ?? 8);
const SEED = Number(process.env.CAPTURE_SEED ?? 1);
const PACKETS_PER_RUN = 60;
/** Nothing is dropped on these ways, so a packet that is not seen for this long is lost. */
const PATIENCE_MS = 2_000;

const PROXY_PORTS = [15001, 15006, 15053];
const PORTS = [53, 80, 443, 8080, 9000, 15008, 15020];
const ADDRESSES: Readonly<Record<Family, readonly string[]>> = {
  v4: ["10.96.0.1", "10.96.0.53", "10.97.0.7", "172.20.1.1", "127.0.0.1", "127.0.0.6", "127.0.0.53"],
  v6: ["fd96::1", "fd96::53", "fd97::7", "fd98::1", "::1", "::6"],
};
/** Source of Envoy's inbound passthrough. */
const PASSTHROUGH: Readonly<Record<Family, string>> = { v4: "127.0.0.6", v6: "::6" };
const RANGES = ["10.96.0.0/16", "10.96.0.53/32", "10.97.0.0/16", "172.20.0.0/15", "127.0.0.1/32", "127.0.0.0/8"];
const RANGES_V6 = ["fd96::/64", "fd97::7/128", "::1/128", "fd98::/16"];

/** Where a packet came out, in words that compare. */
function place(at: Place, port: number, original: readonly [string, number] | undefined): string {
  return `${at}:${port}${original === undefined ? "" : ` for ${formatEndpoint(...original)}`}`;
}

function expected({ settings: given, dialect }: Case, one: Packet): string {
  const { end } = walk(ruleBook(given, one.family, dialect), one);
  const original = one.protocol === "tcp" ? ([one.destination, one.port] as const) : undefined;
  switch (end.kind) {
    case "captured":
    case "local":
      return place("pod", end.port, original);
    case "out":
      return place(end.interface === "eth1" ? "side" : "peer", one.port, original);
    case "forwarded":
      return place(isBehindEth1(one.destination) ? "side" : "peer", one.port, original);
    case "dropped":
      return "nowhere";
  }
}

interface Case {
  readonly settings: CaptureSettings;
  readonly dialect: Dialect;
}

function seen(arrival: Arrival): string {
  if (arrival === undefined) return "nowhere";
  return "error" in arrival ? arrival.error : place(arrival.place, arrival.port, arrival.original);
}

const listOf = (values: readonly string[]) => fc.subarray([...values], { maxLength: 3 }).map((some) => some.join());
const ports = listOf([...PORTS.map(String), "8000:9000", "440:450"]);
const ranges = listOf([...RANGES, ...RANGES_V6]);
const interfaces = fc.constantFrom("", "", "", "eth1", "eth+", "eth9", "eth0,eth9");

const given: fc.Arbitrary<GivenOptions> = fc.record({
  proxyUid: fc.constantFrom("1337", "1337", "1337,2000"),
  proxyGid: fc.constantFrom("", "1337", "3000,1337"),
  mode: fc.constantFrom("REDIRECT", "TPROXY"),
  inboundPorts: fc.oneof(fc.constant("*"), ports),
  inboundPortsExcluded: ports,
  outboundRanges: fc.oneof(fc.constant("*"), fc.constant("*"), ranges),
  outboundRangesExcluded: ranges,
  outboundPorts: ports,
  outboundPortsExcluded: ports,
  excludedInterfaces: interfaces,
  virtualInterfaces: fc.constantFrom("", "", "", "eth1", "eth9"),
  ownerGroups: fc.constantFrom("*", "*", "1000", "2000,3000", ""),
  ownerGroupsExcluded: fc.constantFrom("", "2000"),
  loopbackCidr: fc.constantFrom("127.0.0.1/32", "127.0.0.1/32", "127.0.0.0/8"),
  redirectDns: fc.boolean(),
  captureAllDns: fc.boolean(),
  dropInvalid: fc.boolean(),
});
const around: fc.Arbitrary<Surroundings> = fc.record({
  ipv6: fc.boolean(),
  dnsServers: fc.record({
    v4: fc.constantFrom(["10.96.0.53"], ["127.0.0.53"], ["10.96.0.53", "172.20.1.1"], []),
    v6: fc.constantFrom(["fd96::53"], ["::1"], []),
  }),
  proxyUid: fc.constant("1337"),
});
/** Settings that contradict themselves are refused, and have no rules to walk through. */
const settings = fc
  .tuple(given, around)
  .map(([options, surroundings]) => parseCaptureSettings(readOptions(options, {}).options, surroundings).value)
  .filter((value) => value !== undefined);

const packet: fc.Arbitrary<Packet> = fc
  .record({
    from: fc.constantFrom<Place>("pod", "pod", "pod", "peer", "side"),
    family: fc.constantFrom<Family>("v4", "v6"),
    protocol: fc.constantFrom("tcp", "tcp", "udp"),
    port: fc.constantFrom(...PORTS, ...PORTS, 15001, 15006),
    uid: fc.constantFrom(0, 1000, 1337, 1337, 2000),
    gid: fc.constantFrom(0, 1000, 1337, 2000, 3000),
    address: fc.nat({ max: 100 }),
    passthrough: fc.nat({ max: 9 }).map((value) => value === 0),
  })
  .map(({ from, family, protocol, port, uid, gid, address, passthrough }) => {
    const choices =
      from === "pod" ? [...ADDRESSES[family], POD.eth0[family], POD.eth1[family]] : elsewhere(from, family);
    const destination = choices[address % choices.length] ?? "";
    const toSelf = isOwn(destination);
    const chosen = passthrough ? PASSTHROUGH[family] : sourceTowardsSelf(destination);
    return {
      family,
      direction: from === "pod" ? "outbound" : "inbound",
      protocol,
      port,
      source: from === "pod" && toSelf ? chosen : undefined,
      sourcePort: undefined,
      destination,
      toSelf,
      interface: from === "peer" ? "eth0" : from === "side" ? "eth1" : outInterface(destination),
      owner: from === "pod" ? { uid, gid } : undefined,
      state: "NEW",
    };
  });

/** Addresses to which a neighbour of the pod has the pod as its way, own ones of the pod more often. */
function elsewhere(from: Place, family: Family): readonly string[] {
  const link = from === "peer" ? "eth0" : "eth1";
  const other = from === "peer" ? "eth1" : "eth0";
  const foreign = ADDRESSES[family].filter((one) => !isOwn(one) && isBehindEth1(one) === (other === "eth1"));
  return [...foreign.slice(0, 2), POD[link][family], POD[link][family], POD[other][family]];
}

function isOwn(address: string): boolean {
  return /^(127\.|::[16]$)/.test(address) || Object.values(POD).some((link) => Object.values(link).includes(address));
}

function isBehindEth1(address: string): boolean {
  return Object.values(BEHIND.eth1).some(([range = ""]) => address.startsWith(range.replace(/0\.0\/16|\/64/, "")));
}

function outInterface(destination: string): string {
  if (isOwn(destination)) return "lo";
  return isBehindEth1(destination) ? "eth1" : "eth0";
}

/**
 * Whether an arrival tells anything. ::6 is on loopback only when IPv6 is captured. And in TPROXY mode the pod takes answers
 * to a connection that it forwards for its own, so that the connection is not made though its first packet arrives.
 */
function isTelling(one: CaptureSettings, each: Packet): boolean {
  if (!one.ipv6 && (each.source === "::6" || each.destination === "::6")) return false;
  return one.mode !== "TPROXY" || each.protocol === "udp" || each.direction === "outbound" || each.toSelf;
}

function orderOf(one: Packet): Order {
  const from = one.direction === "outbound" ? "pod" : one.interface === "eth0" ? "peer" : "side";
  return {
    from,
    family: one.family,
    protocol: one.protocol,
    destination: one.destination,
    port: one.port,
    uid: one.owner?.uid ?? 0,
    gid: one.owner?.gid ?? 0,
    ...(one.source === PASSTHROUGH[one.family] ? { source: one.source } : {}),
  };
}

/** A datagram is lost when an address was added just now, and the kernel has not finished with it. */
async function sendTwice(lab: PacketLab, one: Packet): Promise<Arrival> {
  return (await lab.send(orderOf(one), PATIENCE_MS)) ?? lab.send(orderOf(one), PATIENCE_MS);
}

const skip = process.getuid?.() === 0 ? false : "needs root to make network namespaces";

describe("walk() and the kernel", { skip }, () => {
  test("every packet ends where the walker says", { timeout: 3_600_000 }, async (t) => {
    await using lab = await PacketLab.open({
      name: `walk-${process.pid}`,
      proxyPorts: PROXY_PORTS,
      ports: PORTS,
    });
    const commands = systemCommands({ env: { PATH: process.env.PATH }, networkNamespace: lab.namespace });
    let sent = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.record({ settings, dialect: fc.constantFrom<Dialect>("iptables", "nftables") }),
        fc.array(packet, { minLength: PACKETS_PER_RUN, maxLength: PACKETS_PER_RUN }),
        async (one, packets) => {
          const capture = { settings: one.settings, commands, log: SILENT };
          await applyCapture({ ...capture, machine: await readMachine(commands, { dialect: one.dialect }) });
          const telling = packets.filter((each) => isTelling(one.settings, each));
          const arrivals = await Promise.all(telling.map((each) => sendTwice(lab, each)));
          await cleanCapture({ ...capture, machine: await readMachine(commands, { cleanup: true }) });
          sent += telling.length;
          const wrong = telling.flatMap((each, index) => {
            const said = expected(one, each);
            const truth = seen(arrivals[index]);
            return said === truth ? [] : [{ said, truth, packet: each }];
          });
          assert.deepEqual(wrong, []);
        },
      ),
      // The failure lists each wrong packet already, so there is nothing to shrink.
      { numRuns: RUNS, seed: SEED, endOnFailure: true },
    );
    t.diagnostic(`${sent} packets through ${RUNS} settings`);
    assert.ok(sent > RUNS * (PACKETS_PER_RUN / 2));
  });
});
