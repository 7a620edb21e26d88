/** Passes questions on to the machine's name servers: to one after another, or to all at once. */
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { AgentMetrics } from "../../metrics.ts";
import type { Query } from "../message.ts";
import { random16, shuffled } from "../shuffle.ts";
import { ask, type NameServer, type Transport } from "./forward.ts";

export interface ForwarderOptions {
  readonly nameServers: readonly NameServer[];
  /** DNS_FORWARD_PARALLEL: ask all name servers at once and take the first answer. */
  readonly forwardParallel: boolean;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
  /** In milliseconds since any moment. */
  readonly now?: () => number;
}

/** Rejects when no server answers. */
export type Forward = (query: Query, transport: Transport) => Promise<Buffer>;

/** Each takes a socket until it is answered: a flood must not take them all. */
const MAX_RUNNING = 512;
/**
 * Where so many wait, servers are silent, or asked what nobody answers. A question that has waited that long then leaves
 * its place to the next one: it would keep it for seconds, in which others that have an answer were turned away. One that
 * waits shorter keeps it, or in a fast flood no answer could come in time.
 */
const KEEPS_PLACE_MS = 250;

export function forwarder(options: ForwarderOptions): Forward {
  const { nameServers, forwardParallel, log, metrics, now = () => performance.now() } = options;
  /** By when they came; the oldest is the first. */
  const running = new Map<AbortController, number>();
  const makeRoom = () => {
    const [oldest] = running;
    if (oldest === undefined || running.size < MAX_RUNNING) return;
    const [question, since] = oldest;
    if (now() - since < KEEPS_PLACE_MS) throw failed(`${MAX_RUNNING} questions wait for an answer already`);
    running.delete(question);
    question.abort(`for a newer question: ${MAX_RUNNING} wait for an answer`);
  };
  const send = async (query: Query, transport: Transport): Promise<Buffer> => {
    makeRoom();
    const question = new AbortController();
    const { signal } = question;
    running.set(question, now());
    try {
      const servers = shuffled(nameServers, random16);
      const one = (server: NameServer) => ask({ query, transport, signal }, server);
      return await (forwardParallel ? firstOf(servers, one) : oneAfterAnother(servers, one, signal));
    } finally {
      running.delete(question);
      // Servers that were asked as well, and may be silent for seconds.
      question.abort("for the answer of another server");
    }
  };
  return async (query, transport) => {
    metrics.dnsUpstreamRequests.add();
    const startedAt = now();
    try {
      return await send(query, transport);
    } catch (thrown) {
      metrics.dnsUpstreamFailures.add();
      const reasons = thrown instanceof AggregateError ? thrown.errors.map(errorText).join("; ") : errorText(thrown);
      log.info(`upstream failure for "${query.name}": ${reasons}`);
      throw thrown;
    } finally {
      metrics.dnsUpstreamSeconds.observe((now() - startedAt) / 1000);
    }
  };
}

type AskOne = (server: NameServer) => Promise<Buffer>;

function firstOf(servers: readonly NameServer[], one: AskOne): Promise<Buffer> {
  if (servers.length === 0) throw noServer();
  return Promise.any(servers.map(one));
}

async function oneAfterAnother(servers: readonly NameServer[], one: AskOne, signal: AbortSignal): Promise<Buffer> {
  const failures: unknown[] = [];
  for (const server of servers) {
    if (signal.aborted) break;
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
