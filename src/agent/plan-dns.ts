import { MeshError } from "#lib/mesh-error.ts";
import type { AgentContext } from "./agent-context.ts";
import { parseResolvConf, type ResolvConf } from "./dns/resolv-conf.ts";
import { type DnsUdpSocket, openUdp, udpOf } from "./dns/udp-socket.ts";
import { readOptional } from "./prepare.ts";

/** The DNS server of a proxy, as far as it must be known before Envoy starts. */
export interface DnsPlan {
  /** TCP is opened later, on the same addresses: it takes long, and who has the one has the other. */
  readonly sockets: readonly DnsUdpSocket[];
  readonly resolvConf: ResolvConf;
  /** It serves the whole machine, not captured questions. */
  readonly forMachine: boolean;
}

const DNS_PORT = 53;
const DEFAULT_ADDRESS = "localhost:15053";
/** The name servers of a machine whose own resolv.conf names this agent. */
const ORIGINAL_RESOLV_CONF = "/var/lib/istio/resolv.conf";

/**
 * Opens the UDP sockets where DNS is asked for: at sidecars that capture it, and at gateways that resolve names by themselves.
 * Rejects when the address cannot be had: that is told before Envoy is started.
 */
export async function planDns(context: AgentContext): Promise<DnsPlan | undefined> {
  const { config, flags, done, place } = context;
  const log = context.log.scope("dns");
  if (!(config.dns.capture && flags.type === "sidecar") && !config.dns.atGateway) return undefined;
  const { address, forMachine, problem } = dnsAddress(config.dns.address, process.getuid?.() === 0);
  if (problem !== undefined) log.error(problem);
  const original = forMachine ? readOptional(ORIGINAL_RESOLV_CONF) : undefined;
  const resolvConf = parseResolvConf(original ?? readOptional(place.resolvConf) ?? "");
  const { hosts, port } = listenAddresses(address, resolvConf);
  const sockets: DnsUdpSocket[] = [];
  for (const host of hosts) {
    const opened = place.sockets?.dns.get(host);
    const udp = opened === undefined ? await openUdp(host, port) : udpOf(host, opened.udp);
    done.addEventListener("abort", () => udp.socket.close(), { once: true });
    sockets.push(udp);
    log.info(`Starting local udp and tcp DNS server on ${host}:${udp.port}`);
  }
  return { sockets, resolvConf, forMachine };
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
  const port = Number(match?.[3]);
  // The system would take what is beyond the last port for another one.
  if (match === null || port > 65_535)
    throw new MeshError("DNS_ADDRESS_INVALID", `DNS_PROXY_ADDR must be host:port, not "${address}"`);
  const host = match[1] ?? match[2] ?? "";
  if (host === "") return { hosts: [""], port };
  if (host !== "localhost") return { hosts: [host], port };
  const six = servers.filter((server) => server.includes(":"));
  const needsFour = six.length < servers.length || servers.length === 0;
  return { hosts: [...(needsFour ? ["127.0.0.1"] : []), ...(six.length > 0 ? ["::1"] : [])], port };
}
