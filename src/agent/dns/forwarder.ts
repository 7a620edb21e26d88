/** Passes questions on to the machine's name servers: to one after another, or to all at once. */
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { AgentMetrics } from "../metrics.ts";
import { ask, type NameServer, type Transport } from "./forward.ts";
import type { Query } from "./message.ts";
import { random16, shuffled } from "./shuffle.ts";

export interface ForwarderOptions {
  readonly nameServers: readonly NameServer[];
  /** DNS_FORWARD_PARALLEL: ask all name servers at once and take the first answer. */
  readonly forwardParallel: boolean;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
}

/** Rejects when no server answers. */
export type Forward = (query: Query, transport: Transport) => Promise<Buffer>;

/** Each takes a socket until it is answered: a flood must not take them all. */
const MAX_RUNNING = 512;

export function forwarder({ nameServers, forwardParallel, log, metrics }: ForwarderOptions): Forward {
  let running = 0;
  const send = async (query: Query, transport: Transport): Promise<Buffer> => {
    if (running >= MAX_RUNNING) throw failed(`${MAX_RUNNING} questions wait for an answer already`);
    running++;
    try {
      const servers = shuffled(nameServers, random16);
      const one = (server: NameServer) => ask(query, server, transport);
      return await (forwardParallel ? firstOf(servers, one) : oneAfterAnother(servers, one));
    } finally {
      running--;
    }
  };
  return async (query, transport) => {
    metrics.dnsUpstreamRequests.add();
    const startedAt = performance.now();
    try {
      return await send(query, transport);
    } catch (thrown) {
      metrics.dnsUpstreamFailures.add();
      const reasons = thrown instanceof AggregateError ? thrown.errors.map(errorText).join("; ") : errorText(thrown);
      log.info(`upstream failure for "${query.name}": ${reasons}`);
      throw thrown;
    } finally {
      metrics.dnsUpstreamSeconds.observe((performance.now() - startedAt) / 1000);
    }
  };
}

type AskOne = (server: NameServer) => Promise<Buffer>;

function firstOf(servers: readonly NameServer[], one: AskOne): Promise<Buffer> {
  if (servers.length === 0) throw noServer();
  return Promise.any(servers.map(one));
}

async function oneAfterAnother(servers: readonly NameServer[], one: AskOne): Promise<Buffer> {
  const failures: unknown[] = [];
  for (const server of servers) {
    try {
      return await one(server);
    } catch (thrown) {
      failures.push(thrown);
    }
  }
  throw failures.length > 0 ? new AggregateError(failures) : noServer();
}

function noServer(): MeshError {
  return failed("resolv.conf names no server");
}

function failed(reason: string): MeshError {
  return new MeshError("DNS_SERVER_FAILED", reason);
}
