/**
 * What `istio-iptables` can be told: by flag, by environment variable, or by default, in this order of precedence.
 * Names, short forms and variables are those of Istio 1.29, and a few of earlier versions that still mean something.
 */

import type { Problem } from "#config/schema/problem.ts";
import type { Env } from "#lib/env/env-table.ts";
import { parseGoBool } from "#lib/go/go-bool.ts";

interface Option {
  /** Absent for the few that only a variable sets. */
  readonly flag?: string;
  readonly short?: string;
  /** Later names win over earlier ones. */
  readonly env: readonly string[];
  readonly help: string;
}

/** An option whose value is text: a number, a name, or a list separated by commas. */
export interface TextOption extends Option {
  readonly fallback: string;
  /** An empty variable is a value (an empty list), not an unset one. */
  readonly mayBeEmpty?: true;
}

export const TEXT_OPTIONS = {
  proxyPort: {
    flag: "envoy-port",
    short: "p",
    env: [],
    fallback: "15001",
    help: "Port of Envoy to which outbound TCP connections are redirected",
  },
  inboundPort: {
    flag: "inbound-capture-port",
    short: "z",
    env: ["INBOUND_CAPTURE_PORT"],
    fallback: "15006",
    help: "Port of Envoy to which inbound TCP connections are redirected",
  },
  tunnelPort: {
    flag: "inbound-tunnel-port",
    short: "e",
    env: ["INBOUND_TUNNEL_PORT"],
    fallback: "15008",
    help: "Port of Envoy for tunnelled inbound connections; never redirected",
  },
  proxyUid: {
    flag: "proxy-uid",
    short: "u",
    env: ["PROXY_UID"],
    fallback: "",
    help: "Users, separated by commas, whose traffic is not redirected; the proxy runs as one of them",
  },
  proxyGid: {
    flag: "proxy-gid",
    short: "g",
    env: ["PROXY_GID"],
    fallback: "",
    help: "Groups, separated by commas, whose traffic is not redirected; default: the value of -u",
  },
  mode: {
    flag: "istio-inbound-interception-mode",
    short: "m",
    env: ["ISTIO_INBOUND_INTERCEPTION_MODE"],
    fallback: "",
    help: "How inbound connections reach Envoy: REDIRECT (default) or TPROXY",
  },
  tproxyMark: {
    flag: "istio-inbound-tproxy-mark",
    short: "t",
    env: ["ISTIO_INBOUND_TPROXY_MARK"],
    fallback: "1337",
    help: "Packet mark of TPROXY mode",
  },
  tproxyTable: {
    flag: "istio-inbound-tproxy-route-table",
    short: "r",
    env: ["ISTIO_INBOUND_TPROXY_ROUTE_TABLE"],
    fallback: "133",
    help: "Routing table of TPROXY mode",
  },
  inboundPorts: {
    flag: "istio-inbound-ports",
    short: "b",
    env: ["ISTIO_INBOUND_PORTS"],
    fallback: "",
    help: 'Inbound ports to capture, separated by commas; "*" for all, empty for none',
  },
  inboundPortsExcluded: {
    flag: "istio-local-exclude-ports",
    short: "d",
    env: ["ISTIO_LOCAL_EXCLUDE_PORTS"],
    fallback: "",
    help: 'Inbound ports to leave alone when -b is "*"',
  },
  outboundRanges: {
    flag: "istio-service-cidr",
    short: "i",
    env: ["ISTIO_SERVICE_CIDR"],
    fallback: "",
    help: 'IP ranges to capture outbound, separated by commas; "*" for all, empty for none',
  },
  outboundRangesExcluded: {
    flag: "istio-service-exclude-cidr",
    short: "x",
    env: ["ISTIO_SERVICE_EXCLUDE_CIDR"],
    fallback: "",
    help: 'IP ranges to leave alone when -i is "*"',
  },
  outboundPorts: {
    flag: "istio-outbound-ports",
    short: "q",
    env: ["ISTIO_OUTBOUND_PORTS"],
    fallback: "",
    help: "Outbound ports to capture whatever the address is, separated by commas",
  },
  outboundPortsExcluded: {
    flag: "istio-local-outbound-ports-exclude",
    short: "o",
    env: ["ISTIO_LOCAL_OUTBOUND_PORTS_EXCLUDE"],
    fallback: "",
    help: "Outbound ports to leave alone, separated by commas",
  },
  excludedInterfaces: {
    flag: "istio-exclude-interfaces",
    short: "c",
    env: ["ISTIO_EXCLUDE_INTERFACES"],
    fallback: "",
    help: "Network interfaces whose traffic is left alone, separated by commas",
  },
  virtualInterfaces: {
    flag: "kube-virt-interfaces",
    short: "k",
    env: ["KUBEVIRT_INTERFACES", "KUBE_VIRT_INTERFACES"],
    fallback: "",
    help: "Interfaces of virtual machines whose inbound traffic counts as outbound, separated by commas",
  },
  networkNamespace: {
    flag: "network-namespace",
    env: ["NETWORK_NAMESPACE"],
    fallback: "",
    help: "File of the network namespace to work in; default: the one of the caller",
  },
  forcedBinary: {
    flag: "force-iptables-binary",
    env: ["FORCE_IPTABLES_BINARY"],
    fallback: "",
    help: "Back end to use instead of the detected one: legacy or nft",
  },
  iptablesVersion: {
    flag: "iptables-version",
    env: ["IPTABLES_VERSION"],
    fallback: "",
    help: 'Version of iptables instead of the detected one, such as "v1.8.9 (nf_tables)"; says which back end is used',
  },
  probePort: {
    flag: "iptables-probe-port",
    env: ["IPTABLES_PROBE_PORT"],
    fallback: "15002",
    help: "Port on which --run-validation listens",
  },
  probeTimeout: {
    flag: "probe-timeout",
    env: ["PROBE_TIMEOUT"],
    fallback: "5s",
    help: "Time that --run-validation waits",
  },
  ownerGroups: {
    env: ["ISTIO_OUTBOUND_OWNER_GROUPS"],
    fallback: "*",
    mayBeEmpty: true,
    help: 'Groups whose outbound traffic is captured, separated by commas; "*" for all',
  },
  ownerGroupsExcluded: {
    env: ["ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE"],
    fallback: "",
    help: "Groups whose outbound traffic is left alone when all others are captured",
  },
  inboundIpv6: {
    env: ["ENABLE_INBOUND_IPV6"],
    fallback: "",
    help: "Whether IPv6 is captured; default: when the addresses of the machine say so",
  },
  loopbackCidr: {
    env: ["ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR"],
    fallback: "127.0.0.1/32",
    help: "Loopback range that means the application itself",
  },
} as const satisfies Record<string, TextOption>;

/** An option that is on or off. */
export interface SwitchOption extends Option {
  /** On when nothing is given. */
  readonly fallback?: true;
}

export const SWITCHES = {
  dryRun: { flag: "dry-run", short: "n", env: ["DRY_RUN"], help: "Show what would be done and change nothing" },
  skipRuleApply: { flag: "skip-rule-apply", env: ["SKIP_RULE_APPLY"], help: "Do not apply rules" },
  runValidation: { flag: "run-validation", env: ["RUN_VALIDATION"], help: "Check that connections are redirected" },
  redirectDns: {
    flag: "redirect-dns",
    env: ["REDIRECT_DNS", "ISTIO_META_DNS_CAPTURE"],
    help: "Send DNS queries to the agent",
  },
  captureAllDns: {
    flag: "capture-all-dns",
    env: ["CAPTURE_ALL_DNS"],
    help: "With --redirect-dns: every query to port 53, not only those to the servers of /etc/resolv.conf",
  },
  dropInvalid: {
    flag: "drop-invalid",
    env: ["DROP_INVALID", "INVALID_DROP"],
    help: "Drop packets that conntrack cannot place, which would reset connections otherwise",
  },
  dualStack: {
    flag: "dual-stack",
    env: ["DUAL_STACK", "ISTIO_DUAL_STACK"],
    help: "Capture IPv6 as well when IPv4 is in use",
  },
  cniMode: { flag: "cni-mode", env: ["CNI_MODE"], help: "Called by a CNI plugin from the host's file system" },
  reconcile: {
    flag: "reconcile",
    env: ["RECONCILE"],
    help: "Replace rules of earlier runs that differ; always on",
  },
  cleanupOnly: { flag: "cleanup-only", env: ["CLEANUP_ONLY"], help: "Remove the rules instead of making them" },
  forceApply: {
    flag: "force-apply",
    env: ["FORCE_APPLY"],
    help: "Replace the rules even if they are in place already",
  },
  restoreFormat: {
    flag: "restore-format",
    short: "f",
    env: ["RESTORE_FORMAT"],
    fallback: true,
    help: "Show rules as the text for iptables-restore; otherwise as single commands",
  },
  nativeNftables: { flag: "native-nftables", env: ["NATIVE_NFTABLES"], help: "Use nftables instead of iptables" },
} as const satisfies Record<string, SwitchOption>;

export type TextOptionName = keyof typeof TEXT_OPTIONS;
export type SwitchName = keyof typeof SWITCHES;

/** All options as given: texts are not yet checked. */
export type CaptureOptions = Readonly<Record<TextOptionName, string> & Record<SwitchName, boolean>>;

/** Options as they stand on a command line: only those that were given. */
export type GivenOptions = Partial<CaptureOptions>;

export interface ReadOptions {
  readonly options: CaptureOptions;
  /** Variables that make no sense; they are warnings, because Istio ignores such variables. */
  readonly problems: readonly Problem[];
}

/** Flags over variables over defaults. */
export function readOptions(given: GivenOptions, env: Env): ReadOptions {
  const problems: Problem[] = [];
  const texts = mapEntries<TextOptionName, TextOption, string>(TEXT_OPTIONS, (option) => textFromEnv(option, env));
  const switches = mapEntries<SwitchName, SwitchOption, boolean>(SWITCHES, (option) =>
    switchFromEnv(option, env, problems),
  );
  return { options: { ...texts, ...switches, ...given }, problems };
}

function mapEntries<Name extends string, From, To>(
  record: Readonly<Record<Name, From>>,
  change: (value: From) => To,
): Record<Name, To> {
  return Object.fromEntries(Object.entries<From>(record).map(([name, value]) => [name, change(value)])) as Record<
    Name,
    To
  >;
}

function textFromEnv(option: TextOption, env: Env): string {
  let value = option.fallback;
  for (const name of option.env) {
    const found = env[name];
    if (found !== undefined && (found !== "" || option.mayBeEmpty)) value = found;
  }
  return value;
}

function switchFromEnv(option: SwitchOption, env: Env, problems: Problem[]): boolean {
  let value = option.fallback ?? false;
  for (const name of option.env) {
    const found = env[name];
    if (found === undefined || found === "") continue;
    const parsed = parseGoBool(found);
    if (parsed === undefined) {
      problems.push({ field: name, message: `is "${found}", not true or false; it is ignored`, severity: "warning" });
    } else value = parsed;
  }
  return value;
}
