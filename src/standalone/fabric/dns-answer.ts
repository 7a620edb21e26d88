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
  const { aliases, name, values } = namesBehind(question.name, table);
  if (values === undefined) return encode({ ...head, flags: flags | NXDOMAIN, answers: aliases });
  const type = isReverseName(name) ? "PTR" : "A";
  const wanted = question.type === type ? values : [];
  const records = wanted.map((data) => ({ type, name, ttl: TTL_SECONDS, data }) as const);
  return encodeFitting({ ...head, flags, answers: [...aliases, ...records] }, packet, transport);
}

/** What the name in a question leads to, with the records that say so; names are spelled as they were asked for. */
function namesBehind(asked: string, table: HostTable) {
  const { names, values } = lookUp(table, asked);
  const spelled = [asked, ...names.slice(1)];
  const aliases = spelled
    .slice(1)
    .map((data, i) => ({ type: "CNAME", name: spelled[i] ?? asked, ttl: TTL_SECONDS, data }) as const);
  return { aliases, name: spelled.at(-1) ?? asked, values };
}

/** The question that goes to name servers outside: about the host that the name is an alias of. */
export function outsideQuestion(query: Buffer, name: string): Buffer {
  const packet = decodeQuery(query);
  const [question] = packet?.questions ?? [];
  if (packet === undefined || question === undefined || isSameName(question.name, name)) return query;
  return encode({ ...packet, questions: [{ ...question, name }] });
}

/** What was answered outside, to the one who may have asked for it by another name; undefined when it cannot be read. */
export function outsideAnswer({ query, table, transport }: DnsQuestion, answer: Buffer): Buffer | undefined {
  const packet = decodeQuery(query);
  const [question] = packet?.questions ?? [];
  if (packet === undefined || question === undefined) return undefined;
  const { aliases } = namesBehind(question.name, table);
  if (aliases.length === 0) return answer;
  try {
    const { answers = [], ...rest } = decode(answer);
    return encodeFitting({ ...rest, questions: [question], answers: [...aliases, ...answers] }, packet, transport);
  } catch {
    // A server outside may say anything; what is not DNS is no answer.
    return undefined;
  }
}

function isSameName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** An answer that is too long for UDP is asked for again over TCP. */
function encodeFitting(answer: Packet, query: DecodedPacket, transport: DnsQuestion["transport"]): Buffer {
  const encoded = encode(answer);
  if (transport === "tcp" || encoded.length <= udpLimit(query)) return encoded;
  const flags = (answer.flags ?? 0) | TRUNCATED_RESPONSE;
  return encode({ ...answer, flags, answers: [], authorities: [], additionals: [] });
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
