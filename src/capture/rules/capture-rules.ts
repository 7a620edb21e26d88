/**
 * All rules of a pod, as Istio 1.29 writes them.
 *
 *   PREROUTING -> ISTIO_INBOUND -> ISTIO_IN_REDIRECT -> Envoy 15006
 *   OUTPUT -> ISTIO_OUTPUT -> ISTIO_REDIRECT -> Envoy 15001
 *                          -> ISTIO_OUTPUT_DNS -> agent 15053
 *
 * RETURN leaves a packet alone; a jump to one of the REDIRECT chains captures it.
 */
import { type Family, mangle, nat, type Rule } from "../rule.ts";
import type { CaptureSettings } from "../settings.ts";
import { dnsRedirects, dnsZones } from "./dns.ts";
import { type FamilySettings, familySettings } from "./family.ts";
import { inboundPorts, redirectChains, tproxyMarks } from "./inbound.ts";
import {
  capturedPorts,
  capturedRanges,
  excludedRanges,
  outboundEntry,
  outboundLoopback,
  ownerGroups,
  proxyOwners,
} from "./outbound.ts";
import { drops, fromInterface, inState, jumps, returns, toInterface } from "./spec.ts";

/** Order is behaviour: inside a chain the first rule that matches decides. */
const SECTIONS: readonly ((settings: FamilySettings) => readonly Rule[])[] = [
  excludedInterfaces,
  virtualInterfaces,
  invalidPackets,
  redirectChains,
  inboundPorts,
  outboundEntry,
  proxyOwners,
  ownerGroups,
  dnsRedirects,
  dnsZones,
  outboundLoopback,
  excludedRanges,
  capturedPorts,
  capturedRanges,
  tproxyMarks,
];

/** Ordered rules of one address family; none for IPv6 when it is off. */
export function captureRules(settings: CaptureSettings, family: Family): readonly Rule[] {
  if (family === "v6" && !settings.ipv6) return [];
  const input = familySettings(settings, family);
  return SECTIONS.flatMap((section) => section(input));
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
  return [
    mangle.append(
      "PREROUTING",
      jumps("ISTIO_DROP", inState("INVALID")),
      "a packet out of its window would reset the connection",
    ),
    mangle.append("ISTIO_DROP", drops(), "dropped packets are sent again"),
  ];
}
