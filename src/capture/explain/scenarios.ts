/**
 * The packets that a person would ask about, from the settings: for each thing that is included or excluded one that is
 * concerned, and one that is not.
 */

import { AGENT_DNS_PORT, type FamilySettings, familySettings } from "../rules/family.ts";
import type { Family, PortRange } from "../settings/rule.ts";
import type { CaptureSettings } from "../settings/settings.ts";
import type { Packet } from "./packet.ts";
import { type Samples, samplesFor } from "./samples.ts";

export const GROUPS = ["inbound", "outbound", "proxy", "dns", "self"] as const;
export type Group = (typeof GROUPS)[number];

/** `who` `verb` `object`: "a peer" "calls" "port 8080". */
export interface Scenario {
  readonly group: Group;
  readonly who: string;
  readonly verb: string;
  readonly object: string;
  readonly packet: Packet;
}

interface Stage extends FamilySettings {
  readonly samples: Samples;
}

const SECTIONS: Readonly<Record<Group, (stage: Stage) => readonly Omit<Scenario, "group">[]>> = {
  inbound,
  outbound,
  proxy,
  dns,
  self,
};

/** Scenarios of one address family, by group. */
export function scenarios(settings: CaptureSettings, family: Family): readonly Scenario[] {
  const own = familySettings(settings, family);
  const stage = { ...own, samples: samplesFor(own, family) };
  return GROUPS.flatMap((group) => SECTIONS[group](stage).map((one) => ({ group, ...one })));
}

type Told = Omit<Scenario, "group">;

function inbound(stage: Stage): readonly Told[] {
  const { inboundPorts: ports, samples } = stage;
  const peer = { who: "a peer", verb: "calls" };
  const call = (port: number): Packet => ({ ...samples.inbound, port });
  const listed = ports === "*" ? stage.inboundPortsExcluded : ports;
  return [
    ...listed.map((range) => ({ ...peer, object: portName(range), packet: call(range.from) })),
    { ...peer, object: `tunnel port ${stage.tunnelPort}`, packet: call(stage.tunnelPort) },
    { ...peer, object: listed.length === 0 ? "any port" : "any other port", packet: samples.inbound },
    { who: "a peer", verb: "sends", object: "UDP", packet: { ...samples.inbound, protocol: "udp" } },
    ...stage.excludedInterfaces.map((name) => ({
      who: "anybody",
      verb: "calls",
      object: `by interface ${name}`,
      packet: { ...samples.inbound, interface: concrete(name) },
    })),
    ...stage.virtualInterfaces.map((name) => ({
      who: `a machine behind ${name}`,
      verb: "calls",
      object: "any address",
      packet: { ...samples.inbound, ...samples.elsewhere, interface: concrete(name), toSelf: false },
    })),
    ...(stage.dropInvalid
      ? [
          {
            who: "anybody",
            verb: "sends",
            object: "a packet of no known connection",
            packet: { ...samples.inbound, state: "INVALID" as const },
          },
        ]
      : []),
  ];
}

function outbound(stage: Stage): readonly Told[] {
  const { samples } = stage;
  const app = { who: "the application", verb: "calls" };
  const to = (part: Partial<Packet>): Packet => ({ ...samples.outbound, ...part });
  const captured = stage.outboundRanges === "*" ? [] : stage.outboundRanges;
  const ports = [...stage.outboundPortsExcluded, ...stage.outboundPorts];
  const listed = ports.length + stage.outboundRangesExcluded.length + captured.length;
  return [
    ...stage.outboundPortsExcluded.map((range) => ({
      ...app,
      object: portName(range),
      packet: to({ port: range.from }),
    })),
    ...stage.outboundRangesExcluded.map((range) => ({
      ...app,
      object: range,
      packet: samples.towards(address(range)),
    })),
    ...stage.outboundPorts.map((range) => ({ ...app, object: portName(range), packet: to({ port: range.from }) })),
    ...captured.map((range) => ({ ...app, object: range, packet: samples.towards(address(range)) })),
    { ...app, object: listed === 0 ? "any address" : "any other address", packet: samples.outbound },
    { ...app, verb: "sends", object: "UDP", packet: to({ protocol: "udp" }) },
    ...stage.excludedInterfaces.map((name) => ({
      ...app,
      object: `by interface ${name}`,
      packet: to({ interface: concrete(name) }),
    })),
    ...groupScenarios(stage),
  ];
}

function groupScenarios({ ownerGroups, samples }: Stage): readonly Told[] {
  const call = { verb: "calls", object: "any other address" };
  if (ownerGroups.kind === "all-except") {
    return ownerGroups.groups.map((id) => ({
      who: `a process of group ${id}`,
      ...call,
      packet: { ...samples.outbound, owner: { uid: samples.person, gid: firstId(id) } },
    }));
  }
  const others = { ...samples.outbound, owner: { uid: samples.person, gid: samples.person } };
  return [{ who: "a process of no listed group", ...call, packet: others }];
}

function proxy(stage: Stage): readonly Told[] {
  const { samples } = stage;
  const owners = stage.proxyOwners.map(({ of, id }) => ({
    who: `the proxy's ${of === "uid" ? "user" : "group"} ${id}`,
    verb: "calls",
    owner: of === "uid" ? { uid: firstId(id), gid: samples.person } : { uid: samples.person, gid: firstId(id) },
  }));
  return owners.flatMap(({ who, verb, owner }) => {
    const by = { who, verb };
    return [
      { ...by, object: "any address", packet: { ...samples.outbound, owner } },
      { ...by, object: "its own pod by address", packet: { ...samples.toSelf, owner } },
      { ...by, object: `tunnel port ${stage.tunnelPort} of its own pod`, packet: tunnel(stage, owner) },
      { ...by, object: "localhost", packet: { ...samples.overLoopback, owner } },
      {
        ...by,
        object: `the application from ${address(stage.passthrough)}`,
        packet: { ...samples.toSelf, owner, source: address(stage.passthrough) },
      },
    ];
  });
}

function tunnel({ samples, tunnelPort }: Stage, owner: Packet["owner"]): Packet {
  return { ...samples.toSelf, owner, port: tunnelPort };
}

function dns(stage: Stage): readonly Told[] {
  const { samples } = stage;
  const listed = stage.dns === "servers" ? stage.dnsServers : [];
  const servers = [
    ...listed.map((server) => ({ name: `name server ${server}`, at: server })),
    { name: listed.length === 0 ? "any name server" : "any other name server", at: samples.elsewhere.destination },
  ];
  const askers = [
    { who: "the application", owner: samples.outbound.owner },
    ...stage.proxyOwners.slice(0, 1).map(({ id }) => ({
      who: "the agent",
      owner: { uid: firstId(id), gid: firstId(stage.proxyGids[0] ?? id) },
    })),
  ];
  const asked = askers.flatMap(({ who, owner }) =>
    servers.flatMap(({ name, at }) =>
      (["udp", "tcp"] as const).map((protocol) => ({
        who,
        verb: "asks",
        object: `${name} by ${protocol.toUpperCase()}`,
        packet: { ...samples.towards(at), owner, protocol, port: 53 },
      })),
    ),
  );
  return stage.dns === "off" ? asked : [...asked, ...answers(stage)];
}

/** Answers to queries by UDP; their ends are no surprise, but they have rules of their own. */
function answers({ samples, dns: mode, dnsServers, proxyOwners, proxyGids }: Stage): readonly Told[] {
  const server = (mode === "servers" ? dnsServers[0] : undefined) ?? samples.elsewhere.destination;
  const [first] = proxyOwners;
  const agent = first === undefined ? undefined : { uid: firstId(first.id), gid: firstId(proxyGids[0] ?? first.id) };
  return [
    {
      who: "the agent",
      verb: "answers",
      object: "the application",
      packet: { ...samples.overLoopback, protocol: "udp", sourcePort: AGENT_DNS_PORT, owner: agent },
    },
    {
      who: "a name server",
      verb: "answers",
      object: "the agent",
      packet: { ...samples.inbound, protocol: "udp", source: server, sourcePort: 53 },
    },
  ];
}

function self({ samples }: Stage): readonly Told[] {
  const app = { who: "the application", verb: "calls", owner: samples.outbound.owner };
  return [
    { ...app, object: "localhost", packet: { ...samples.overLoopback, owner: app.owner } },
    { ...app, object: "its own pod by address", packet: { ...samples.toSelf, owner: app.owner } },
  ];
}

function portName({ from, to }: PortRange): string {
  return from === to ? `port ${from}` : `ports ${from} to ${to}`;
}

/** An interface whose name matches. */
function concrete(name: string): string {
  return name.replace(/\+$/, "0");
}

function address(range: string): string {
  return range.split("/")[0] ?? "";
}

/** The first of `a-b`, or the only one. */
function firstId(id: string): number {
  return Number(id.split("-")[0]);
}
