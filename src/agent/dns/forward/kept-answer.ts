/**
 * Answers of name servers, read as far as needed to keep them: how long they are valid (RFC 2308 for those that say no),
 * where their TTLs are, and which addresses may change places.
 */
import {
  FLAG_AUTHORITATIVE,
  FLAG_RESPONSE,
  FLAG_TRUNCATED,
  HEADER_BYTES,
  OPCODE_BITS,
  type Query,
  TYPE_A,
  TYPE_AAAA,
} from "../message.ts";
import { type ReadRecord, readRecords } from "../records.ts";
import { type Random16, shuffled } from "../shuffle.ts";

/** An answer and where things are in it. */
export interface KeptAnswer {
  readonly bytes: Buffer;
  /** Offsets of the TTLs of all records. */
  readonly ttls: readonly number[];
  /** Offsets of addresses, by the name they belong to; with them, the order of addresses can change. */
  readonly addresses: readonly (readonly number[])[];
  readonly lifetimeSeconds: number;
}

const CLASS_IN = 1;
const TYPE_SOA = 6;
const TYPE_OPT = 41;
/** Recursion desired, authentic data, checking disabled: another answer may be due to another value. */
const ASKED_FLAGS = 0x0130;
const RCODE = 0x000f;
const NO_ERROR = 0;
const NAME_ERROR = 3;
const DNSSEC_OK = 0x8000;
/** Transfers, mail-box lists and ANY have answers that are not of one kind; signatures (24, 250) are for one message. */
const NEVER_KEPT: ReadonlySet<number> = new Set([24, 249, 250, 251, 252, 253, 254, 255]);
/** However long a server says: something may change before. */
const MAX_SECONDS = 3_600;
const MAX_NEGATIVE_SECONDS = 300;
const MAX_LABELS = 128;

/**
 * What questions must have in common to have the same answer: name, type, class, flags, and whether they can take EDNS
 * and DNSSEC. Undefined for questions whose answer is for the one who asks: with options of EDNS, say, or signed.
 */
export function questionKey({ bytes, questionEnd, type }: Query): string | undefined {
  const flags = bytes.readUInt16BE(2);
  const questionClass = bytes.readUInt16BE(questionEnd - 2);
  const plain = (flags & OPCODE_BITS) === 0 && bytes.readUInt16BE(4) === 1 && bytes.readUInt32BE(6) === 0;
  if (!plain || questionClass !== CLASS_IN || NEVER_KEPT.has(type)) return undefined;
  const edns = ednsOf(bytes, questionEnd);
  if (edns === undefined) return undefined;
  return `${flags & ASKED_FLAGS} ${edns} ${bytes.toString("latin1", HEADER_BYTES, questionEnd).toLowerCase()}`;
}

/** `none`, `plain` or `dnssec`; undefined for anything else behind the question. */
function ednsOf(bytes: Buffer, at: number): string | undefined {
  const additional = bytes.readUInt16BE(10);
  if (additional === 0) return at === bytes.length ? "none" : undefined;
  const isBareOpt =
    additional === 1 &&
    bytes.length === at + 11 &&
    bytes.readUInt8(at) === 0 &&
    bytes.readUInt16BE(at + 1) === TYPE_OPT &&
    bytes.readUInt8(at + 6) === 0 &&
    bytes.readUInt16BE(at + 9) === 0;
  if (!isBareOpt) return undefined;
  return (bytes.readUInt16BE(at + 7) & DNSSEC_OK) === 0 ? "plain" : "dnssec";
}

/** The answer, if it may be kept: complete, definite, and valid for a time. */
export function keptAnswer(bytes: Buffer, questionEnd: number): KeptAnswer | undefined {
  if (bytes.length < questionEnd || bytes.readUInt16BE(4) !== 1) return undefined;
  const flags = bytes.readUInt16BE(2);
  const rcode = flags & RCODE;
  if ((flags & FLAG_RESPONSE) === 0 || (flags & (OPCODE_BITS | FLAG_TRUNCATED)) !== 0) return undefined;
  if (rcode !== NO_ERROR && rcode !== NAME_ERROR) return undefined;
  const records = readRecords(bytes, questionEnd);
  if (records === undefined) return undefined;
  // In the place of an OPT record's TTL are further bits of the error.
  if (records.some(({ type, ttl }) => type === TYPE_OPT && ttl >>> 24 !== 0)) return undefined;
  const valid = records.filter(({ type }) => type !== TYPE_OPT);
  const answers = valid.slice(0, bytes.readUInt16BE(6));
  const positive = rcode === NO_ERROR && answers.length > 0;
  const lifetimeSeconds = positive
    ? Math.min(MAX_SECONDS, ...valid.map(({ ttl }) => ttl))
    : negativeSeconds(bytes, valid);
  if (lifetimeSeconds <= 0) return undefined;
  return {
    bytes: Buffer.from(bytes),
    ttls: valid.map(({ ttlAt }) => ttlAt),
    addresses: addressesByOwner(bytes, answers),
    lifetimeSeconds,
  };
}

/** The answer as the one who asks now may have it. */
export function renewed(
  { bytes, ttls, addresses }: KeptAnswer,
  query: Query,
  { ttlOf, random }: { readonly ttlOf: (ttl: number) => number; readonly random: Random16 },
): Buffer {
  const message = addressed(bytes, query);
  message.writeUInt16BE(message.readUInt16BE(2) & ~FLAG_AUTHORITATIVE, 2);
  for (const at of ttls) message.writeUInt32BE(ttlOf(bytes.readUInt32BE(at)), at);
  for (const offsets of addresses) {
    const from = shuffled(offsets, random);
    for (const [index, to] of offsets.entries()) {
      const start = from[index] ?? to;
      bytes.copy(message, to, start, start + bytes.readUInt16BE(start - 2));
    }
  }
  return message;
}

/** A copy with the id and the spelling of another question of the same key. */
export function addressed(answer: Buffer, { bytes, questionEnd }: Query): Buffer {
  const message = Buffer.from(answer);
  message.writeUInt16BE(bytes.readUInt16BE(0), 0);
  // An error may come without the question.
  if (message.length >= questionEnd && message.readUInt16BE(4) === 1)
    bytes.copy(message, HEADER_BYTES, HEADER_BYTES, questionEnd);
  return message;
}

/** What is too large for the client is cut down to the question and a hint to ask over TCP. */
export function fitted(answer: Buffer, { questionEnd }: Query, maxBytes: number): Buffer {
  if (answer.length <= maxBytes) return answer;
  const message = Buffer.from(answer.subarray(0, questionEnd));
  message.writeUInt16BE(message.readUInt16BE(2) | FLAG_TRUNCATED, 2);
  message.fill(0, 6, HEADER_BYTES);
  return message;
}

/** That something is not there is valid as long as the zone says; without its record nobody knows. */
function negativeSeconds(bytes: Buffer, records: readonly ReadRecord[]): number {
  const soa = records.find(({ type }) => type === TYPE_SOA);
  if (soa === undefined || soa.dataEnd - soa.dataAt < 20) return 0;
  return Math.min(MAX_NEGATIVE_SECONDS, soa.ttl, bytes.readUInt32BE(soa.dataEnd - 4));
}

function addressesByOwner(bytes: Buffer, answers: readonly ReadRecord[]): readonly (readonly number[])[] {
  const byOwner = new Map<string, number[]>();
  for (const { type, nameAt, dataAt, dataEnd } of answers) {
    if (dataEnd - dataAt !== ADDRESS_BYTES.get(type)) continue;
    const owner = `${type} ${readOwner(bytes, nameAt)}`;
    byOwner.set(owner, [...(byOwner.get(owner) ?? []), dataAt]);
  }
  return [...byOwner.values()].filter((offsets) => offsets.length > 1);
}

const ADDRESS_BYTES: ReadonlyMap<number, number> = new Map([
  [TYPE_A, 4],
  [TYPE_AAAA, 16],
]);

/** A name with its pointers followed, which only lead back; where they do not, what was read until then. */
function readOwner(bytes: Buffer, start: number): string {
  const labels: string[] = [];
  let limit = start;
  for (let at = start; at < bytes.length && labels.length < MAX_LABELS; ) {
    const length = bytes.readUInt8(at);
    if (length === 0) break;
    if (length < 0xc0) {
      labels.push(bytes.toString("latin1", at + 1, at + 1 + length).toLowerCase());
      at += 1 + length;
      continue;
    }
    const target = bytes.readUInt16BE(at) & 0x3fff;
    if (target >= limit) break;
    limit = target;
    at = target;
  }
  return labels.join(".");
}
