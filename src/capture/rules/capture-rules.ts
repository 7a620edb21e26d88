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
import { dnsRules } from "./dns.ts";
import { type FamilySettings, familySettings } from "./family.ts";
import { inboundPorts, redirectChains, tproxyMarks } from "./inbound.ts";
import { outboundDestinations, outboundEntry, ownerGroups, proxyOwners } from "./outbound.ts";

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
  dnsRules,
  outboundDestinations,
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
      append("PREROUTING", `-i ${name} -j RETURN`, "excluded interface"),
      append("OUTPUT", `-o ${name} -j RETURN`, "excluded interface"),
    ]),
  );
}

function virtualInterfaces(settings: FamilySettings): readonly Rule[] {
  const first = { chain: "PREROUTING", position: 1 };
  return settings.virtualInterfaces.map((name) =>
    nat.insert(first, `-i ${name} -j RETURN`, "traffic of virtual machines is not inbound"),
  );
}

function invalidPackets(settings: FamilySettings): readonly Rule[] {
  if (!settings.dropInvalid) return [];
  return [
    mangle.append(
      "PREROUTING",
      "-m conntrack --ctstate INVALID -j ISTIO_DROP",
      "a packet out of its window would reset the connection",
    ),
    mangle.append("ISTIO_DROP", "-j DROP", "dropped packets are sent again"),
  ];
}
