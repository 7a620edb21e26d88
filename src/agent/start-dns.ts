import { isIPv6 } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";
import type { AgentContext } from "./agent-context.ts";
import { parseResolvConf, type ResolvConf } from "./dns/resolv-conf.ts";
import { MeshResolver } from "./dns/resolver.ts";
import { startDnsServer } from "./dns/server.ts";
import { readOptional } from "./prepare.ts";

const DNS_PORT = 53;

/** Serves DNS where it is asked for: at sidecars that capture it, and at gateways that resolve names by themselves. */
export async function startDns(context: AgentContext, running: Promise<void>[]): Promise<MeshResolver | undefined> {
  const { config, flags, dnsDomain, log, metrics, done, place } = context;
  const { capture, atGateway, address, forwardParallel } = config.dns;
  if (!(capture && flags.type === "sidecar") && !atGateway) return undefined;
  const resolvConf = parseResolvConf((await readOptional(place.resolvConf)) ?? "");
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
    log: log.scope("dns"),
    metrics,
  });
  running.push(new Promise((resolve) => done.addEventListener("abort", () => resolve(server.close()), { once: true })));
  return resolver;
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
  if (host === "") return { hosts: ["0.0.0.0"], port };
  if (host !== "localhost") return { hosts: [host], port };
  const six = servers.filter((server) => isIPv6(server.split("%")[0] ?? ""));
  const needsFour = six.length < servers.length || servers.length === 0;
  return { hosts: [...(needsFour ? ["127.0.0.1"] : []), ...(six.length > 0 ? ["::1"] : [])], port };
}
