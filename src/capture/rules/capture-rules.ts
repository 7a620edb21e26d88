/**
 * All rules of a pod, as Istio 1.29 writes them.
 *
 *   PREROUTING -> ISTIO_INBOUND -> ISTIO_IN_REDIRECT -> Envoy 15006
 *   OUTPUT -> ISTIO_OUTPUT -> ISTIO_REDIRECT -> Envoy 15001
 *                          -> ISTIO_OUTPUT_DNS -> agent 15053
 *
 * RETURN leaves a packet alone; a jump to one of the REDIRECT chains captures it.
 */
import { type Family, mangle, nat, type Rule } from "../settings/rule.ts";
import type { CaptureSettings } from "../settings/settings.ts";
import { dnsEntries, dnsRedirects, dnsZones } from "./dns.ts";
import { type FamilySettings, familySettings } from "./family.ts";
import { inboundPorts, redirectChains, tproxyReturns, tproxyToApplication, tproxyToSelf } from "./inbound.ts";
import {
  capturedPorts,
  capturedRanges,
  excludedRanges,
  outboundEntry,
  outboundLoopback,
  ownerGroups,
  proxyExemption,
} from "./outbound.ts";
import { drops, fromInterface, inState, jumps, returns, TCP, toInterface, UDP } from "./spec.ts";

/** Ordered rules of one address family; none for IPv6 when it is off. */
export function captureRules(settings: CaptureSettings, family: Family): readonly Rule[] {
  return familyEnabled(settings, family) ? ruleSections(familySettings(settings, family)).flat() : [];
}

/** Whether a family has rules at all. */
export function familyEnabled(settings: CaptureSettings, family: Family): boolean {
  return family === "v4" || settings.ipv6;
}

/** Order is behaviour: inside a chain the first rule that matches decides. Both families have the same sections. */
export function ruleSections(settings: FamilySettings): readonly (readonly Rule[])[] {
  return [
    excludedInterfaces(settings),
    virtualInterfaces(settings),
    invalidPackets(settings),
    redirectChains(settings),
    inboundPorts(settings),
    outboundEntry(settings),
    ...settings.proxyOwners.map((owner) => proxyExemption(settings, owner)),
    ownerGroups(settings),
    dnsEntries(settings),
    dnsRedirects(settings, TCP),
    dnsRedirects(settings, UDP),
    dnsZones(settings),
    outboundLoopback(settings),
    excludedRanges(settings),
    capturedPorts(settings),
    capturedRanges(settings),
    tproxyToApplication(settings),
    ...settings.proxyOwners.map((owner) => tproxyToSelf(settings, owner)),
    tproxyReturns(settings),
  ];
}

function excludedInterfaces(settings: FamilySettings): readonly Rule[] {
  const tables = settings.mode === "TPROXY" ? [nat, mangle] : [nat];
  return tables.flatMap(({ append }) =>
    settings.excludedInterfaces.flatMap((name) => [
      append("PREROUTING", returns(fromInterface(name)), "excluded interface"),
      append("OUTPUT", returns(toInterface(name)), "excluded interface"),
    ]),
  );
}

function virtualInterfaces(settings: FamilySettings): readonly Rule[] {
  const first = { chain: "PREROUTING", position: 1 };
  return settings.virtualInterfaces.map((name) =>
    nat.insert(first, returns(fromInterface(name)), "traffic of virtual machines is not inbound"),
  );
}

function invalidPackets(settings: FamilySettings): readonly Rule[] {
  if (!settings.dropInvalid) return [];
  // As Istio has it; the resets that this prevents are TCP's anyway.
  const protocol = settings.dialect === "nftables" ? [TCP] : [];
  return [
    mangle.append(
      "PREROUTING",
      jumps("ISTIO_DROP", ...protocol, inState("INVALID")),
      "a packet out of its window would reset the connection",
    ),
    mangle.append("ISTIO_DROP", drops(), "dropped packets are sent again"),
  ];
}
