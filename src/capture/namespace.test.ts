/** The rules at work: real packets in network namespaces of the test's own. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SILENT } from "#lib/log/log.ts";
import { type Arrival, type Order, PacketLab, POD } from "../../test/support/packet-lab.ts";
import { runCapture } from "./run.ts";
import type { GivenOptions } from "./settings/options.ts";

const FAMILIES = ["v4", "v6"] as const;
type Family = (typeof FAMILIES)[number];

/** Addresses that the peer answers to, and one behind the excluded interface. */
const SERVICE = { v4: "10.96.0.1", v6: "fd96::1" };
const NAME_SERVER = { v4: "10.96.0.53", v6: "fd96::53" };
const EXCLUDED = { v4: "172.20.1.1", v6: "fd98::1" };
const BEHIND_ETH1 = { v4: "10.97.0.7", v6: "fd97::7" };
const LOOPBACK = { v4: "127.0.0.1", v6: "::1" };

const SETTINGS: GivenOptions = {
  proxyUid: "1337",
  inboundPorts: "*",
  inboundPortsExcluded: "15020",
  outboundRanges: "*",
  outboundRangesExcluded: "172.20.0.0/16,fd98::/64",
  outboundPortsExcluded: "443",
  excludedInterfaces: "eth1",
  ownerGroupsExcluded: "2000",
  redirectDns: true,
  captureAllDns: true,
  dualStack: true,
};

type Packet = Partial<Order> & { readonly ends: string };

/** Packets, and where each of them must end. */
const PACKETS: Readonly<Record<string, (family: Family) => Packet>> = {
  "a call of the application": (family) => ({ destination: SERVICE[family], ends: "pod:15001" }),
  "a call of the proxy": (family) => ({ destination: SERVICE[family], uid: 1337, gid: 1337, ends: "peer:80" }),
  "a call of the proxy's group": (family) => ({ destination: SERVICE[family], gid: 1337, ends: "peer:80" }),
  "a call of an excluded group": (family) => ({ destination: SERVICE[family], gid: 2000, ends: "peer:80" }),
  "a call to an excluded port": (family) => ({ destination: SERVICE[family], port: 443, ends: "peer:443" }),
  "a call to an excluded range": (family) => ({ destination: EXCLUDED[family], ends: "peer:80" }),
  "a call by an excluded interface": (family) => ({ destination: BEHIND_ETH1[family], ends: "side:80" }),
  "a call over loopback": (family) => ({ destination: LOOPBACK[family], ends: "pod:80" }),
  "a call of the proxy to its own pod": (family) => ({
    destination: POD.eth0[family],
    uid: 1337,
    gid: 1337,
    ends: "pod:15006",
  }),
  "a query over UDP": (family) => query(family, "udp", 1000, "pod:15053"),
  "a query over TCP": (family) => query(family, "tcp", 1000, "pod:15053"),
  "a query of the proxy over UDP": (family) => query(family, "udp", 1337, "peer:53"),
  "a query of the proxy over TCP": (family) => query(family, "tcp", 1337, "peer:53"),
  "a call from outside": (family) => ({ from: "peer", destination: POD.eth0[family], ends: "pod:15006" }),
  "a call from outside to an excluded port": (family) => ({
    from: "peer",
    destination: POD.eth0[family],
    port: 15020,
    ends: "pod:15020",
  }),
  "a call from outside by an excluded interface": (family) => ({
    from: "side",
    destination: POD.eth1[family],
    ends: "pod:80",
  }),
};

function query(family: Family, protocol: "udp" | "tcp", id: number, ends: string): Packet {
  return { destination: NAME_SERVER[family], protocol, port: 53, uid: id, gid: id, ends };
}

/** Nothing is lost on these ways, so a packet that is not seen for this long is a wrong answer. */
const PATIENCE_MS = 5_000;

function placeOf(arrival: Arrival): string {
  if (arrival === undefined) return "nowhere";
  return "error" in arrival ? arrival.error : `${arrival.place}:${arrival.port}`;
}

const skip = process.getuid?.() === 0 ? false : "needs root to make network namespaces";

describe("packets end where they belong", { skip }, () => {
  for (const mode of ["REDIRECT", "TPROXY"]) {
    for (const nativeNftables of [false, true]) {
      test(`${mode} by ${nativeNftables ? "nftables" : "iptables"}`, async () => {
        await using lab = await PacketLab.open({
          name: `capture-${process.pid}`,
          proxyPorts: [15001, 15006, 15053],
          ports: [53, 80, 443, 15020],
        });
        const env = { PATH: process.env.PATH };
        const given = { ...SETTINGS, mode, nativeNftables, networkNamespace: lab.namespace };
        await runCapture({ given, env, log: SILENT });
        const results = await Promise.all(FAMILIES.flatMap((family) => sendAll(lab, family)));
        assert.deepEqual(Object.fromEntries(results.map(({ name, truth }) => [name, truth])), wanted());
      });
    }
  }
});

function sendAll(lab: PacketLab, family: Family): readonly Promise<{ name: string; truth: string }>[] {
  return Object.entries(PACKETS).map(async ([name, packetOf]) => {
    const { ends: _, ...packet } = packetOf(family);
    const defaults = { from: "pod", family, protocol: "tcp", destination: "", port: 80, uid: 1000, gid: 1000 } as const;
    return { name: `${name} (${family})`, truth: placeOf(await lab.send({ ...defaults, ...packet }, PATIENCE_MS)) };
  });
}

function wanted(): Readonly<Record<string, string>> {
  const each = (family: Family) =>
    Object.entries(PACKETS).map(([name, packetOf]) => [`${name} (${family})`, packetOf(family).ends] as const);
  return Object.fromEntries(FAMILIES.flatMap(each));
}
