/** One DNS message in, one out, for names of the fabric: what is not in the table does not exist. */
import {
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  decode,
  encode,
  type Packet,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from "dns-packet";
import { type HostTable, isReverseName, lookUp } from "./names.ts";

const SERVER_FAILURE = 2;
const NXDOMAIN = 3;
const NOT_IMPLEMENTED = 4;
/** As in a cluster: short, because services come and go. */
const TTL_SECONDS = 5;
const PLAIN_UDP_BYTES = 512;

export interface DnsQuestion {
  readonly query: Buffer;
  readonly table: HostTable;
  readonly transport: "udp" | "tcp";
}

/** The answer, or undefined for what is not a query: such packets are dropped. */
export function dnsAnswer({ query, table, transport }: DnsQuestion): Buffer | undefined {
  const packet = decodeQuery(query);
  const [question] = packet?.questions ?? [];
  if (packet === undefined || question === undefined) return undefined;
  const head = { type: "response", id: packet.id ?? 0, questions: [question] } satisfies Packet;
  const flags = ((packet.flags ?? 0) & RECURSION_DESIRED) | AUTHORITATIVE_ANSWER | RECURSION_AVAILABLE;
  if (packet.opcode !== "QUERY") return encode({ ...head, flags: flags | NOT_IMPLEMENTED });
  const known = lookUp(table, question.name);
  if (known === undefined) return encode({ ...head, flags: flags | NXDOMAIN });
  const type = isReverseName(question.name) ? "PTR" : "A";
  const wanted = question.type === type ? known : [];
  const answers = wanted.map((data) => ({ type, name: question.name, ttl: TTL_SECONDS, data }) as const);
  const answer = encode({ ...head, flags, answers });
  const fits = transport === "tcp" || answer.length <= udpLimit(packet);
  return fits ? answer : encode({ ...head, flags: flags | TRUNCATED_RESPONSE });
}

/** For a question that nobody answered; undefined for what is not a query. */
export function serverFailure(query: Buffer): Buffer | undefined {
  const packet = decodeQuery(query);
  if (packet === undefined) return undefined;
  const flags = ((packet.flags ?? 0) & RECURSION_DESIRED) | RECURSION_AVAILABLE | SERVER_FAILURE;
  return encode({ type: "response", id: packet.id ?? 0, questions: packet.questions ?? [], flags });
}

/** How much the caller takes over UDP, as it says by EDNS. */
function udpLimit({ additionals = [] }: DecodedPacket): number {
  const sizes = additionals.map((record) => (record.type === "OPT" ? record.udpPayloadSize : 0));
  return Math.max(PLAIN_UDP_BYTES, ...sizes);
}

function decodeQuery(bytes: Buffer): (DecodedPacket & { readonly opcode?: string }) | undefined {
  try {
    const packet = decode(bytes);
    return packet.type === "query" ? packet : undefined;
  } catch {
    // Anybody may send anything to a port: what is not DNS is no event.
    return undefined;
  }
}
