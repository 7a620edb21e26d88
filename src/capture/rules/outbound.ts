/** Connections that leave the pod. The order is behaviour: who may pass first, then where to, then everything else. */
import { nat, type Rule } from "../settings/rule.ts";
import type { FamilySettings } from "./family.ts";
import {
  from,
  fromInterface,
  jumps,
  notOwnedBy,
  notTo,
  notToPort,
  type Owner,
  ownedBy,
  returns,
  TCP,
  to,
  toInterface,
  toPort,
  UDP,
} from "./spec.ts";

/** Entry into the chain and what leaves it before owners are looked at. */
export function outboundEntry(settings: FamilySettings): readonly Rule[] {
  return [
    nat.append("OUTPUT", jumps("ISTIO_OUTPUT"), "every outbound packet is looked at"),
    ...settings.outboundPortsExcluded.flatMap((port) => [
      nat.append("ISTIO_OUTPUT", returns(TCP, toPort(port)), "excluded outbound port"),
      nat.append("ISTIO_OUTPUT", returns(UDP, toPort(port)), "excluded outbound port"),
    ]),
    nat.append(
      "ISTIO_OUTPUT",
      returns(toInterface("lo"), from(settings.passthrough)),
      "Envoy's inbound passthrough to the application",
    ),
  ];
}

/** The proxy's own traffic is exempt, else it would be sent back to the proxy without end. */
export function proxyExemption(settings: FamilySettings, owner: Owner): readonly Rule[] {
  const dns = settings.dns !== "off";
  // Queries of the agent to a resolver on this machine must not become inbound connections.
  const butNot = dns && owner.of === "uid" ? notToPort(53, settings.tunnelPort) : notToPort(settings.tunnelPort);
  // A resolver on loopback is captured as any other, so calls to port 53 go on to the DNS rules.
  const overLoopback = dns ? [toInterface("lo"), TCP, notToPort(53)] : [toInterface("lo")];
  return [
    nat.append(
      "ISTIO_OUTPUT",
      jumps("ISTIO_IN_REDIRECT", toInterface("lo"), notTo(settings.loopback), TCP, butNot, ownedBy(owner)),
      "the proxy calls its own pod by address: that is inbound traffic",
    ),
    ...(settings.capturesLoopback
      ? []
      : [
          nat.append(
            "ISTIO_OUTPUT",
            returns(...overLoopback, notOwnedBy(owner)),
            "the application calls itself over loopback",
          ),
        ]),
    nat.append("ISTIO_OUTPUT", returns(ownedBy(owner)), "whatever the proxy sends goes out"),
  ];
}

/** Only some groups are captured, or all but some. */
export function ownerGroups({ ownerGroups: filter }: FamilySettings): readonly Rule[] {
  const groups = filter.groups.map((id): Owner => ({ of: "gid", id }));
  if (filter.kind === "all-except") {
    return groups.map((group) => nat.append("ISTIO_OUTPUT", returns(ownedBy(group)), "excluded group"));
  }
  return [
    nat.append("ISTIO_OUTPUT", returns(...groups.map(notOwnedBy)), "only processes of the listed groups are captured"),
  ];
}

/** Calls to localhost pass before anything is captured. */
export function outboundLoopback({ loopback }: FamilySettings): readonly Rule[] {
  return [nat.append("ISTIO_OUTPUT", returns(to(loopback)), "calls to localhost mean this pod, not the mesh")];
}

/** Excluded ranges pass before anything is captured. */
export function excludedRanges(settings: FamilySettings): readonly Rule[] {
  return settings.outboundRangesExcluded.map((range) =>
    nat.append("ISTIO_OUTPUT", returns(to(range)), "excluded outbound range"),
  );
}

/** Ports that are captured whatever the address is. */
export function capturedPorts(settings: FamilySettings): readonly Rule[] {
  return settings.outboundPorts.map((port) =>
    nat.append("ISTIO_OUTPUT", jumps("ISTIO_REDIRECT", TCP, toPort(port)), "captured outbound port"),
  );
}

/** All that is left, or what goes to some ranges; also what virtual machines send. */
export function capturedRanges(settings: FamilySettings): readonly Rule[] {
  const first = { chain: "PREROUTING", position: 1 };
  const why = "what a virtual machine sends counts as outbound";
  const interfaces = settings.virtualInterfaces.map(fromInterface);
  if (settings.outboundRanges === "*") {
    return [
      nat.append("ISTIO_OUTPUT", jumps("ISTIO_REDIRECT"), "all other connections go to Envoy"),
      ...interfaces.map((inbound) => nat.insert(first, jumps("ISTIO_REDIRECT", inbound), why)),
    ];
  }
  return settings.outboundRanges.flatMap((range) => [
    ...interfaces.map((inbound) => nat.insert(first, jumps("ISTIO_REDIRECT", inbound, to(range)), why)),
    nat.append("ISTIO_OUTPUT", jumps("ISTIO_REDIRECT", to(range)), "captured outbound range"),
  ]);
}
