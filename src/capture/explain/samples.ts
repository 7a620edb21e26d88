/** Ports, addresses and people that no setting is about, to stand for all others. */

import type { FamilySettings } from "../rules/family.ts";
import { isLoopback, LOOPBACK } from "../settings/family.ts";
import type { Family, PortRange } from "../settings/rule.ts";
import { isId, isInRange, isInterface } from "./match.ts";
import { type Packet, sourceTowardsSelf } from "./packet.ts";

export interface Samples {
  readonly inbound: Packet;
  /** By the application, to an address outside. */
  readonly outbound: Packet;
  /** By nobody in particular, to an address of the pod. */
  readonly toSelf: Packet;
  readonly overLoopback: Packet;
  /** An address outside that is in no listed range. */
  readonly elsewhere: Pick<Packet, "destination">;
  /** A user and group that are neither the proxy's nor listed. */
  readonly person: number;
  /** By the application, to this address, wherever it is. */
  towards(address: string): Packet;
}

const INTERFACES = ["eth0", "net0", "ens3"] as const;
const POD: Readonly<Record<Family, string>> = { v4: "10.244.0.7", v6: "fd00:244::7" };
const OUTSIDE: Readonly<Record<Family, readonly [string, ...string[]]>> = {
  v4: ["203.0.113.10", "198.51.100.10", "192.0.2.10", "100.64.0.10", "10.1.2.3", "172.16.1.2", "192.168.1.2"],
  v6: ["2001:db8::10", "fd12:3456::10", "fc00::10", "2001:2::10"],
};
const PORTS = [8080, 80, 443, 9080, 5000, 3000, 6379, 5432, 7070, 4000, 65_000] as const;
const PEOPLE = [1000, 2000, 3000, 4000, 5000, 10_000, 20_000] as const;

export function samplesFor(settings: FamilySettings, family: Family): Samples {
  const port = unlistedPort(settings);
  const person = unlistedPerson(settings);
  const destination = unlistedAddress(settings, family);
  const sender = { uid: person, gid: groupOfApplication(settings) ?? person };
  const outbound: Packet = {
    family,
    direction: "outbound",
    protocol: "tcp",
    source: undefined,
    sourcePort: undefined,
    destination,
    port,
    toSelf: false,
    interface: unlistedInterface(settings),
    owner: sender,
    state: "NEW",
  };
  const towards = (address: string): Packet =>
    isLoopback(address) ? { ...outbound, ...toOwn(address) } : { ...outbound, destination: address };
  return {
    outbound,
    inbound: { ...outbound, direction: "inbound", destination: POD[family], toSelf: true, owner: undefined },
    toSelf: { ...outbound, ...toOwn(POD[family]) },
    overLoopback: towards(LOOPBACK[family]),
    elsewhere: { destination },
    person,
    towards,
  };
}

function toOwn(address: string): Pick<Packet, "destination" | "source" | "toSelf" | "interface"> {
  return { destination: address, source: sourceTowardsSelf(address), toSelf: true, interface: "lo" };
}

/** The first that is not in a list; with lists that leave none, the first. */
function unlisted<T>(choices: readonly [T, ...T[]], isListed: (choice: T) => boolean): T {
  return choices.find((choice) => !isListed(choice)) ?? choices[0];
}

function unlistedPort(settings: FamilySettings): number {
  const { inboundPorts, tunnelPort } = settings;
  const listed: readonly PortRange[] = [
    ...(inboundPorts === "*" ? [] : inboundPorts),
    ...settings.inboundPortsExcluded,
    ...settings.outboundPorts,
    ...settings.outboundPortsExcluded,
    { from: tunnelPort, to: tunnelPort },
  ];
  return unlisted(PORTS, (port) => listed.some(({ from, to }) => port >= from && port <= to));
}

function unlistedAddress(settings: FamilySettings, family: Family): string {
  const ranges = [
    ...(settings.outboundRanges === "*" ? [] : settings.outboundRanges),
    ...settings.outboundRangesExcluded,
    ...settings.dnsServers.map((server) => `${server}${settings.host}`),
  ];
  return unlisted(OUTSIDE[family], (address) => ranges.some((range) => isInRange(address, range)));
}

function unlistedPerson({ proxyOwners, ownerGroups }: FamilySettings): number {
  const ids = [...proxyOwners.map(({ id }) => id), ...ownerGroups.groups];
  return unlisted(PEOPLE, (person) => ids.some((id) => isId(id, person)));
}

/** An application is in one of the groups that are captured, if only some are. */
function groupOfApplication({ ownerGroups }: FamilySettings): number | undefined {
  const [first] = ownerGroups.kind === "only" ? ownerGroups.groups : [];
  return first === undefined ? undefined : Number(first.split("-")[0]);
}

function unlistedInterface({ excludedInterfaces, virtualInterfaces }: FamilySettings): string {
  const listed = [...excludedInterfaces, ...virtualInterfaces];
  return unlisted(INTERFACES, (name) => listed.some((one) => isInterface(one, name)));
}
