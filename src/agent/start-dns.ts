import { isIPv6 } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";
import type { AgentContext } from "./agent-context.ts";
import { ForwardCache } from "./dns/forward-cache.ts";
import { parseResolvConf, type ResolvConf } from "./dns/resolv-conf.ts";
import { MeshResolver } from "./dns/resolver.ts";
import { startDnsServer } from "./dns/server.ts";
import { readOptional } from "./prepare.ts";

const DNS_PORT = 53;
const DEFAULT_ADDRESS = "localhost:15053";
/** The name servers of a machine whose own resolv.conf names this agent. */
const ORIGINAL_RESOLV_CONF = "/var/lib/istio/resolv.conf";

/** Serves DNS where it is asked for: at sidecars that capture it, and at gateways that resolve names by themselves. */
export async function startDns(context: AgentContext, running: Promise<void>[]): Promise<MeshResolver | undefined> {
  const { config, flags, dnsDomain, metrics, done, place } = context;
  const log = context.log.scope("dns");
  const { capture, atGateway, forwardParallel, forwardCache } = config.dns;
  if (!(capture && flags.type === "sidecar") && !atGateway) return undefined;
  const { address, forMachine, problem } = dnsAddress(config.dns.address, process.getuid?.() === 0);
  if (problem !== undefined) log.error(problem);
  const original = forMachine ? readOptional(ORIGINAL_RESOLV_CONF) : undefined;
  const resolvConf = parseResolvConf(original ?? readOptional(place.resolvConf) ?? "");
  const resolver = new MeshResolver({
    namespace: config.podNamespace,
    domain: dnsDomain,
    searchDomains: resolvConf.searchDomains,
  });
  const server = await startDnsServer({
    ...listenAddresses(address, resolvConf),
    opened: place.sockets?.dns,
    resolver,
    nameServers: resolvConf.servers.map((host) => ({ host, port: DNS_PORT })),
    forwardParallel,
    cache: forwardCache ? new ForwardCache({ count: (result) => metrics.dnsCache[result].add() }) : undefined,
    answerBeforeSync: forMachine,
    log,
    metrics,
  });
  running.push(new Promise((resolve) => done.addEventListener("abort", () => resolve(server.close()), { once: true })));
  return resolver;
}

/**
 * On port 53 the agent is the DNS server of the whole machine, without any capture: that takes root, and the machine
 * needs its other names even before the mesh's are known.
 */
export function dnsAddress(wanted: string, isRoot: boolean): DnsAddress {
  if (!wanted.endsWith(`:${DNS_PORT}`)) return { address: wanted || DEFAULT_ADDRESS, forMachine: false };
  if (isRoot) return { address: wanted, forMachine: true };
  const problem = "DNS address :53 and not running as root, use default";
  return { address: DEFAULT_ADDRESS, forMachine: false, problem };
}

export interface DnsAddress {
  readonly address: string;
  readonly forMachine: boolean;
  readonly problem?: string;
}

/** Captured questions keep the family of the name server they were meant for, so `localhost` means each family in use. */
export function listenAddresses(
  address: string,
  { servers }: ResolvConf,
): { readonly hosts: readonly string[]; readonly port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(address);
  if (match === null) throw new MeshError("DNS_ADDRESS_INVALID", `DNS_PROXY_ADDR must be host:port, not "${address}"`);
  const host = match[1] ?? match[2] ?? "";
  const port = Number(match[3]);
  if (host === "") return { hosts: [""], port };
  if (host !== "localhost") return { hosts: [host], port };
  const six = servers.filter((server) => isIPv6(server.split("%")[0] ?? ""));
  const needsFour = six.length < servers.length || servers.length === 0;
  return { hosts: [...(needsFour ? ["127.0.0.1"] : []), ...(six.length > 0 ? ["::1"] : [])], port };
}
