/** Connections that leave the pod. The order is behaviour: who may pass first, then where to, then everything else. */
import { nat, type Rule } from "../rule.ts";
import type { FamilySettings } from "./family.ts";

/** Entry into the chain and what leaves it before owners are looked at. */
export function outboundEntry(settings: FamilySettings): readonly Rule[] {
  return [
    nat.append("OUTPUT", "-j ISTIO_OUTPUT", "every outbound packet is looked at"),
    ...settings.outboundPortsExcluded.flatMap((port) => [
      nat.append("ISTIO_OUTPUT", `-p tcp --dport ${port} -j RETURN`, "excluded outbound port"),
      nat.append("ISTIO_OUTPUT", `-p udp --dport ${port} -j RETURN`, "excluded outbound port"),
    ]),
    nat.append(
      "ISTIO_OUTPUT",
      `-o lo -s ${settings.passthrough} -j RETURN`,
      "Envoy's inbound passthrough to the application",
    ),
  ];
}

/** The proxy's own traffic is exempt, else it would be sent back to the proxy without end. */
export function proxyOwners(settings: FamilySettings): readonly Rule[] {
  return [
    ...settings.proxyUids.flatMap((uid) => owner(settings, "--uid-owner", uid)),
    ...settings.proxyGids.flatMap((gid) => owner(settings, "--gid-owner", gid)),
  ];
}

function owner(settings: FamilySettings, option: "--uid-owner" | "--gid-owner", id: string): readonly Rule[] {
  const dns = settings.dns !== "off";
  // Queries of the agent to a resolver on this machine must not become inbound connections.
  const butNot =
    dns && option === "--uid-owner"
      ? `-m multiport ! --dports 53,${settings.tunnelPort}`
      : `! --dport ${settings.tunnelPort}`;
  // A resolver on loopback is captured as any other, so calls to port 53 go on to the DNS rules.
  const loopback = dns ? "-o lo -p tcp ! --dport 53" : "-o lo";
  return [
    nat.append(
      "ISTIO_OUTPUT",
      `-o lo ! -d ${settings.loopback} -p tcp ${butNot} -m owner ${option} ${id} -j ISTIO_IN_REDIRECT`,
      "the proxy calls its own pod by address: that is inbound traffic",
    ),
    ...(settings.capturesLoopback
      ? []
      : [
          nat.append(
            "ISTIO_OUTPUT",
            `${loopback} -m owner ! ${option} ${id} -j RETURN`,
            "the application calls itself over loopback",
          ),
        ]),
    nat.append("ISTIO_OUTPUT", `-m owner ${option} ${id} -j RETURN`, "whatever the proxy sends goes out"),
  ];
}

/** Only some groups are captured, or all but some. */
export function ownerGroups({ ownerGroups: filter }: FamilySettings): readonly Rule[] {
  if (filter.kind === "all-except") {
    return filter.groups.map((group) =>
      nat.append("ISTIO_OUTPUT", `-m owner --gid-owner ${group} -j RETURN`, "excluded group"),
    );
  }
  const noneOf = filter.groups.map((group) => `-m owner ! --gid-owner ${group} `).join("");
  return [nat.append("ISTIO_OUTPUT", `${noneOf}-j RETURN`, "only processes of the listed groups are captured")];
}

/** Loopback and excluded ranges pass; then what is to be captured goes to Envoy. */
export function outboundDestinations(settings: FamilySettings): readonly Rule[] {
  return [
    nat.append("ISTIO_OUTPUT", `-d ${settings.loopback} -j RETURN`, "calls to localhost mean this pod, not the mesh"),
    ...settings.outboundRangesExcluded.map((range) =>
      nat.append("ISTIO_OUTPUT", `-d ${range} -j RETURN`, "excluded outbound range"),
    ),
    ...settings.outboundPorts.map((port) =>
      nat.append("ISTIO_OUTPUT", `-p tcp --dport ${port} -j ISTIO_REDIRECT`, "captured outbound port"),
    ),
    ...capturedRanges(settings),
  ];
}

function capturedRanges(settings: FamilySettings): readonly Rule[] {
  const first = { chain: "PREROUTING", position: 1 };
  const fromVirtualMachines = (to: string) =>
    settings.virtualInterfaces.map((name) =>
      nat.insert(first, `-i ${name} ${to}-j ISTIO_REDIRECT`, "what a virtual machine sends counts as outbound"),
    );
  if (settings.outboundRanges === "*") {
    return [
      nat.append("ISTIO_OUTPUT", "-j ISTIO_REDIRECT", "all other connections go to Envoy"),
      ...fromVirtualMachines(""),
    ];
  }
  return settings.outboundRanges.flatMap((range) => [
    ...fromVirtualMachines(`-d ${range} `),
    nat.append("ISTIO_OUTPUT", `-d ${range} -j ISTIO_REDIRECT`, "captured outbound range"),
  ]);
}
