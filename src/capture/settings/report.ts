/** What a run says about its input: the variables it was given, and the settings that came out. */
import type { Env } from "#lib/env/env-table.ts";
import type { CaptureOptions } from "./options.ts";
import type { CaptureSettings, Surroundings } from "./settings.ts";

const SHOWN_VARIABLES = [
  "ENVOY_PORT",
  "INBOUND_CAPTURE_PORT",
  "ISTIO_INBOUND_INTERCEPTION_MODE",
  "ISTIO_INBOUND_TPROXY_MARK",
  "ISTIO_INBOUND_TPROXY_ROUTE_TABLE",
  "ISTIO_INBOUND_PORTS",
  "ISTIO_OUTBOUND_PORTS",
  "ISTIO_LOCAL_EXCLUDE_PORTS",
  "ISTIO_EXCLUDE_INTERFACES",
  "ISTIO_SERVICE_CIDR",
  "ISTIO_SERVICE_EXCLUDE_CIDR",
  "ISTIO_META_DNS_CAPTURE",
  "INVALID_DROP",
];

/** `NAME=value` lines under the headings of all versions of Istio, so that whoever looks for one finds it. */
export function environmentBlock(env: Env): string {
  return block(
    "Istio iptables environment:\nEnvironment:\n------------",
    SHOWN_VARIABLES.map((name) => [name, env[name] ?? ""]),
  );
}

export interface VariablesInput {
  readonly options: CaptureOptions;
  readonly settings: CaptureSettings;
  readonly around: Surroundings;
}

/** `NAME=value` lines of all settings, lists as they were given. */
export function variablesBlock({ options, settings, around }: VariablesInput): string {
  const servers = [around.dnsServers.v4, around.dnsServers.v6].map((list) => `[${list.join(" ")}]`);
  return block("Istio config:\nVariables:\n----------", [
    ["PROXY_PORT", options.proxyPort],
    ["PROXY_INBOUND_CAPTURE_PORT", options.inboundPort],
    ["PROXY_TUNNEL_PORT", options.tunnelPort],
    ["PROXY_UID", settings.proxyUids.join()],
    ["PROXY_GID", settings.proxyGids.join()],
    ["INBOUND_INTERCEPTION_MODE", options.mode],
    ["INBOUND_TPROXY_MARK", options.tproxyMark],
    ["INBOUND_TPROXY_ROUTE_TABLE", options.tproxyTable],
    ["INBOUND_PORTS_INCLUDE", options.inboundPorts],
    ["INBOUND_PORTS_EXCLUDE", options.inboundPortsExcluded],
    ["OUTBOUND_OWNER_GROUPS_INCLUDE", options.ownerGroups],
    ["OUTBOUND_OWNER_GROUPS_EXCLUDE", options.ownerGroupsExcluded],
    ["OUTBOUND_IP_RANGES_INCLUDE", options.outboundRanges],
    ["OUTBOUND_IP_RANGES_EXCLUDE", options.outboundRangesExcluded],
    ["OUTBOUND_PORTS_INCLUDE", options.outboundPorts],
    ["OUTBOUND_PORTS_EXCLUDE", options.outboundPortsExcluded],
    ["KUBEVIRT_INTERFACES", options.virtualInterfaces],
    ["KUBE_VIRT_INTERFACES", options.virtualInterfaces],
    ["ENABLE_INBOUND_IPV6", settings.ipv6],
    ["DUAL_STACK", options.dualStack],
    ["DNS_CAPTURE", options.redirectDns],
    ["DROP_INVALID", options.dropInvalid],
    ["CAPTURE_ALL_DNS", options.captureAllDns],
    ["DNS_SERVERS", servers.join()],
    ["NETWORK_NAMESPACE", options.networkNamespace],
    ["CNI_MODE", options.cniMode],
    ["EXCLUDE_INTERFACES", options.excludedInterfaces],
    ["RECONCILE", options.reconcile],
    ["CLEANUP_ONLY", options.cleanupOnly],
    ["FORCE_APPLY", options.forceApply],
    ["NATIVE_NFTABLES", options.nativeNftables],
    ["FORCE_IPTABLES_BINARY", options.forcedBinary],
  ]);
}

function block(heading: string, values: readonly (readonly [string, string | boolean])[]): string {
  return [heading, ...values.map(([name, value]) => `${name}=${value}`), ""].join("\n");
}
