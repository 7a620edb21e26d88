/**
 * DNS queries go to the agent. UDP queries of the application and those of the agent to the real server may carry the
 * same addresses and ports, so each leg gets a conntrack zone of its own, else answers are delivered to the wrong one:
 *
 *   application --zone 2--> agent (15053) --zone 1--> name server
 */
import { nat, type Rule, raw } from "../rule.ts";
import { AGENT_DNS_PORT, type FamilySettings } from "./family.ts";

export function dnsRules(settings: FamilySettings): readonly Rule[] {
  if (settings.dns === "off") return [];
  return [
    raw.append("OUTPUT", "-j ISTIO_OUTPUT_DNS", "outbound queries get a conntrack zone"),
    ...redirects(settings),
    ...settings.proxyUids.flatMap((uid) => agentZones(`--uid-owner ${uid}`)),
    ...settings.proxyGids.flatMap((gid) => agentZones(`--gid-owner ${gid}`)),
    ...applicationZones(settings),
  ];
}

/** The servers to capture, as matches on their address; one empty match for all of them. */
function servers(settings: FamilySettings, option: "-d" | "-s"): readonly string[] {
  if (settings.dns === "all") return [""];
  return settings.dnsServers.map((server) => `${option} ${server}${settings.host} `);
}

function redirects(settings: FamilySettings): readonly Rule[] {
  const destinations = servers(settings, "-d");
  if (destinations.length === 0) return [];
  const why = "the agent answers this query";
  return [
    nat.append("ISTIO_OUTPUT", "-j ISTIO_OUTPUT_DNS", "what is left may be a query"),
    ...destinations.map((to) =>
      nat.append("ISTIO_OUTPUT_DNS", `-p tcp --dport 53 ${to}-j REDIRECT --to-ports ${AGENT_DNS_PORT}`, why),
    ),
    ...destinations.map((to) =>
      nat.append("ISTIO_OUTPUT_DNS", `-p udp --dport 53 ${to}-j REDIRECT --to-port ${AGENT_DNS_PORT}`, why),
    ),
  ];
}

function agentZones(owner: string): readonly Rule[] {
  return [
    raw.append(
      "ISTIO_OUTPUT_DNS",
      `-p udp --dport 53 -m owner ${owner} -j CT --zone 1`,
      "the agent asks a name server",
    ),
    raw.append(
      "ISTIO_OUTPUT_DNS",
      `-p udp --sport ${AGENT_DNS_PORT} -m owner ${owner} -j CT --zone 2`,
      "the agent answers the application",
    ),
  ];
}

function applicationZones(settings: FamilySettings): readonly Rule[] {
  const sources = servers(settings, "-s");
  if (sources.length === 0) return [];
  const destinations = servers(settings, "-d");
  return [
    raw.append("PREROUTING", "-j ISTIO_INBOUND", "answers of name servers get a conntrack zone"),
    ...sources.flatMap((from, index) => [
      raw.append(
        "ISTIO_OUTPUT_DNS",
        `-p udp --dport 53 ${destinations[index] ?? ""}-j CT --zone 2`,
        "the application asks a name server",
      ),
      raw.append("ISTIO_INBOUND", `-p udp --sport 53 ${from}-j CT --zone 1`, "a name server answers the agent"),
    ]),
  ];
}
