/**
 * DNS queries go to the agent. UDP queries of the application and those of the agent to the real server may carry the
 * same addresses and ports, so each leg gets a conntrack zone of its own, else answers are delivered to the wrong one:
 *
 *   application --zone 2--> agent (15053) --zone 1--> name server
 */
import { type Match, nat, type Rule, raw } from "../settings/rule.ts";
import { AGENT_DNS_PORT, type FamilySettings } from "./family.ts";
import { from, fromPort, jumps, type Owner, ownedBy, redirects, setsZone, to, toPort, UDP } from "./spec.ts";

const DNS_PORT = 53;
const ZONE_OF_AGENT = 1;
const ZONE_OF_APPLICATION = 2;

/** Into the chains that tell queries from the rest; none lead there without a server to redirect. */
export function dnsEntries(settings: FamilySettings): readonly Rule[] {
  if (settings.dns === "off") return [];
  const zones = raw.append("OUTPUT", jumps("ISTIO_OUTPUT_DNS"), "outbound queries get a conntrack zone");
  const answers = nat.append("ISTIO_OUTPUT", jumps("ISTIO_OUTPUT_DNS"), "what is left may be a query");
  return serverMatches(settings).length === 0 ? [zones] : [zones, answers];
}

/** Queries over one protocol go to the agent. */
export function dnsRedirects(settings: FamilySettings, protocol: Match): readonly Rule[] {
  if (settings.dns === "off") return [];
  return serverMatches(settings).map(({ asDestination }) =>
    nat.append(
      "ISTIO_OUTPUT_DNS",
      redirects(AGENT_DNS_PORT, protocol, toPort(DNS_PORT), ...asDestination),
      "the agent answers this query",
    ),
  );
}

/** Zones of the agent's packets come first: they are told by their owner. */
export function dnsZones(settings: FamilySettings): readonly Rule[] {
  if (settings.dns === "off") return [];
  return [...settings.proxyOwners.flatMap(agentZones), ...applicationZones(settings)];
}

interface ServerMatch {
  readonly asDestination: readonly Match[];
  readonly asSource: readonly Match[];
}

/** The servers to capture, by address; one without a condition for all of them. */
function serverMatches(settings: FamilySettings): readonly ServerMatch[] {
  if (settings.dns === "all") return [{ asDestination: [], asSource: [] }];
  return settings.dnsServers.map((server) => {
    const range = `${server}${settings.host}`;
    return { asDestination: [to(range)], asSource: [from(range)] };
  });
}

function agentZones(owner: Owner): readonly Rule[] {
  return [
    raw.append(
      "ISTIO_OUTPUT_DNS",
      setsZone(ZONE_OF_AGENT, UDP, toPort(DNS_PORT), ownedBy(owner)),
      "the agent asks a name server",
    ),
    raw.append(
      "ISTIO_OUTPUT_DNS",
      setsZone(ZONE_OF_APPLICATION, UDP, fromPort(AGENT_DNS_PORT), ownedBy(owner)),
      "the agent answers the application",
    ),
  ];
}

function applicationZones(settings: FamilySettings): readonly Rule[] {
  const servers = serverMatches(settings);
  if (servers.length === 0) return [];
  return [
    raw.append("PREROUTING", jumps("ISTIO_INBOUND"), "answers of name servers get a conntrack zone"),
    ...servers.flatMap(({ asDestination, asSource }) => [
      raw.append(
        "ISTIO_OUTPUT_DNS",
        setsZone(ZONE_OF_APPLICATION, UDP, toPort(DNS_PORT), ...asDestination),
        "the application asks a name server",
      ),
      raw.append(
        "ISTIO_INBOUND",
        setsZone(ZONE_OF_AGENT, UDP, fromPort(DNS_PORT), ...asSource),
        "a name server answers the agent",
      ),
    ]),
  ];
}
