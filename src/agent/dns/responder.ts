import type { Logger } from "#lib/log/log.ts";
import type { AgentMetrics } from "../metrics.ts";
import type { Transport } from "./forward/forward.ts";
import type { ForwardCache } from "./forward/forward-cache.ts";
import { type ForwarderOptions, forwarder } from "./forward/forwarder.ts";
import {
  errorAnswer,
  isQuery,
  MAX_TCP_BYTES,
  parseQuery,
  type Query,
  RCODE_REFUSED,
  RCODE_SERVER_FAILURE,
} from "./message.ts";
import type { MeshResolver } from "./resolver.ts";

export interface ResponderOptions extends ForwarderOptions {
  readonly resolver: MeshResolver;
  /** Keeps answers of name servers; undefined to ask each time. */
  readonly cache?: ForwardCache | undefined;
  /** Whether a client may have its questions passed on; others get names of the mesh only. */
  readonly mayForward?: (address: string) => boolean;
  /** Pass questions on before there is a name table, for a machine that has no other DNS. */
  readonly answerBeforeSync?: boolean;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
}

/** Where a question came from. */
export interface DnsClient {
  readonly transport: Transport;
  readonly address: string;
}

/** The answer to a message: at once, later from a name server, or none to what is no question. */
export type Respond = (message: Buffer, client: DnsClient) => Buffer | Promise<Buffer> | undefined;

export function responder(options: ResponderOptions): Respond {
  const { resolver, cache, answerBeforeSync = false, mayForward = () => true, metrics, log } = options;
  const forward = forwarder(options);
  const forwarded = (query: Query, transport: Transport, maxBytes: number) => {
    const ask = () => forward(query, transport);
    const answer = cache === undefined ? ask() : cache.answer(query, maxBytes, ask);
    if (!(answer instanceof Promise)) return answer;
    return answer.catch(() => errorAnswer(query.bytes, RCODE_SERVER_FAILURE, query.questionEnd));
  };
  return (message, { transport, address }) => {
    const query = parseQuery(message);
    if (query === undefined) return undefined;
    if (!isQuery(query)) return errorAnswer(message, query.rcode);
    metrics.dnsRequests.add();
    const maxBytes = transport === "tcp" ? MAX_TCP_BYTES : query.maxUdpBytes;
    if (!resolver.ready && !answerBeforeSync) return errorAnswer(message, RCODE_SERVER_FAILURE, query.questionEnd);
    const ours = resolver.answer(query, maxBytes);
    log.debug("question", { name: query.name, type: query.type, protocol: transport, mesh: ours !== undefined });
    if (ours !== undefined) return ours;
    // A server that resolves any name for anybody is used to flood others.
    if (!mayForward(address)) return errorAnswer(message, RCODE_REFUSED, query.questionEnd);
    return forwarded(query, transport, maxBytes);
  };
}
