import type { AgentContext } from "./agent-context.ts";
import { ForwardCache } from "./dns/forward/forward-cache.ts";
import { ownClients } from "./dns/own-clients.ts";
import { MeshResolver } from "./dns/resolver.ts";
import { startDnsServer } from "./dns/server.ts";
import type { DnsPlan } from "./plan-dns.ts";

const DNS_PORT = 53;

/** Serves DNS on the sockets that were opened for it, if there are any. */
export async function startDns(
  context: AgentContext,
  plan: DnsPlan | undefined,
  running: Promise<void>[],
): Promise<MeshResolver | undefined> {
  if (plan === undefined) return undefined;
  const { config, dnsDomain, metrics, place, done } = context;
  const { forwardParallel, forwardCache } = config.dns;
  const { servers, searchDomains } = plan.resolvConf;
  const resolver = new MeshResolver({ namespace: config.podNamespace, domain: dnsDomain, searchDomains });
  const server = await startDnsServer(plan.sockets, {
    openedTcp: place.sockets && new Map([...place.sockets.dns].map(([host, { tcp }]) => [host, tcp])),
    resolver,
    nameServers: servers.map((host) => ({ host, port: DNS_PORT })),
    forwardParallel,
    cache: forwardCache ? new ForwardCache({ count: (result) => metrics.dnsCache[result].add() }) : undefined,
    answerBeforeSync: plan.forMachine,
    mayForward: ownClients(place.interfaces),
    log: context.log.scope("dns"),
    metrics,
  });
  running.push(new Promise((resolve) => done.addEventListener("abort", () => resolve(server.close()), { once: true })));
  return resolver;
}
