import type { Family } from "../settings/rule.ts";
import type { CaptureSettings, RangeSet } from "../settings/settings.ts";
import type { Owner } from "./spec.ts";

/** Settings as one address family sees them. */
export interface FamilySettings
  extends Omit<CaptureSettings, "outboundRanges" | "outboundRangesExcluded" | "dnsServers"> {
  /** In which language the rules will be written; they are not the same in every detail. */
  readonly dialect: Dialect;
  /** Users, then groups, that the proxy may run as. */
  readonly proxyOwners: readonly Owner[];
  /** Loopback addresses that mean the application itself. */
  readonly loopback: string;
  /** Source address from which Envoy's inbound passthrough cluster calls the application. */
  readonly passthrough: string;
  /** Length of a single address, `/32` or `/128`. */
  readonly host: string;
  readonly outboundRanges: RangeSet;
  readonly outboundRangesExcluded: readonly string[];
  readonly dnsServers: readonly string[];
}

/** Programs that take the rules. */
export type Dialect = "iptables" | "nftables";

/** DNS port of the agent. */
export const AGENT_DNS_PORT = 15053;

export function familySettings(
  settings: CaptureSettings,
  family: Family,
  dialect: Dialect = "iptables",
): FamilySettings {
  return {
    ...settings,
    dialect,
    proxyOwners: [
      ...settings.proxyUids.map((id): Owner => ({ of: "uid", id })),
      ...settings.proxyGids.map((id): Owner => ({ of: "gid", id })),
    ],
    loopback: family === "v4" ? settings.loopbackCidr : "::1/128",
    passthrough: family === "v4" ? "127.0.0.6/32" : "::6/128",
    host: family === "v4" ? "/32" : "/128",
    outboundRanges: settings.outboundRanges[family],
    outboundRangesExcluded: settings.outboundRangesExcluded[family],
    dnsServers: settings.dnsServers[family],
  };
}
