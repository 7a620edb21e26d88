/** DNS messages as bytes (RFC 1035): just enough to understand a question and to write answers to it. */

export const TYPE_A = 1;
export const TYPE_CNAME = 5;
export const TYPE_AAAA = 28;
export const RCODE_FORMAT_ERROR = 1;
export const RCODE_SERVER_FAILURE = 2;
const RCODE_NOT_IMPLEMENTED = 4;
export const RCODE_REFUSED = 5;
export const MAX_TCP_BYTES = 65_535;

const TYPE_OPT = 41;
const CLASS_IN = 1;
export const HEADER_BYTES = 12;
/** What a client without EDNS takes over UDP. */
const MIN_UDP_BYTES = 512;
/** The agent holds a name for a short time only, because the mesh may change at any moment. */
const TTL_SECONDS = 30;
/** In the place of a name: an offset at which it is written, such as that of the question, right behind the header. */
const POINTER = 0xc000;
/** What is before the data of a record whose owner is a pointer. */
const RECORD_HEAD_BYTES = 12;

export const FLAG_RESPONSE = 0x8000;
export const FLAG_AUTHORITATIVE = 0x0400;
export const FLAG_TRUNCATED = 0x0200;
export const OPCODE_BITS = 0x7800;
/** A name, an OPT record and a signature are far shorter. Questions are kept while they wait for an answer. */
export const MAX_QUERY_BYTES = 4_096;
const OPCODE_NOTIFY = 0x2000;
/** Opcode, recursion desired, checking disabled: repeated in the answer. */
const REPEATED_FLAGS = 0x7910;

export interface Query {
  readonly bytes: Buffer;
  /** Lower-case, with a final dot. */
  readonly name: string;
  readonly type: number;
  /** Where the question ends. */
  readonly questionEnd: number;
  /** How large an answer over UDP may be. */
  readonly maxUdpBytes: number;
}

/** What a datagram is: a question, nothing that has an answer, or an error to answer with. */
export type ParsedQuery = Query | { readonly rcode: number } | undefined;

export function isQuery(parsed: ParsedQuery): parsed is Query {
  return parsed !== undefined && "name" in parsed;
}

/** Whether a message, of which there is a header at least, says that it is an answer. */
export function isResponse(bytes: Buffer): boolean {
  return (bytes.readUInt16BE(2) & FLAG_RESPONSE) !== 0;
}

export function parseQuery(bytes: Buffer): ParsedQuery {
  if (bytes.length < HEADER_BYTES || bytes.length > MAX_QUERY_BYTES || isResponse(bytes)) return undefined;
  const refused = headerProblem(bytes);
  if (refused !== undefined) return { rcode: refused };
  const name = readName(bytes, HEADER_BYTES);
  if (name === undefined || name.end + 4 > bytes.length) return { rcode: RCODE_FORMAT_ERROR };
  const questionEnd = name.end + 4;
  return {
    bytes,
    name: name.text,
    type: bytes.readUInt16BE(name.end),
    questionEnd,
    maxUdpBytes: Math.max(MIN_UDP_BYTES, advertisedSize(bytes, questionEnd)),
  };
}

/** What a header asks for that has no answer: another operation than a question, or other than one question with what belongs to it. */
function headerProblem(bytes: Buffer): number | undefined {
  const opcode = bytes.readUInt16BE(2) & OPCODE_BITS;
  if (opcode !== 0 && opcode !== OPCODE_NOTIFY) return RCODE_NOT_IMPLEMENTED;
  const oneQuestion = bytes.readUInt16BE(4) === 1;
  const fewRecords = bytes.readUInt16BE(6) <= 1 && bytes.readUInt16BE(8) <= 1 && bytes.readUInt16BE(10) <= 2;
  return oneQuestion && fewRecords ? undefined : RCODE_FORMAT_ERROR;
}

interface ReadName {
  readonly text: string;
  readonly end: number;
}

const DOT = 46;
const FIRST_UPPER = 65;
const LAST_UPPER = 90;
const TO_LOWER = 32;
const FIRST_BEYOND_ASCII = 128;
/** Of a name on the wire, by the protocol. */
const MAX_NAME_BYTES = 255;
/** Where names are spelled out; one after another, so one place is enough. */
const SPELLED = Buffer.alloc(MAX_NAME_BYTES);

/** A name without compression. Each question comes through here, so labels are not made texts of their own. */
function readName(bytes: Buffer, start: number): ReadName | undefined {
  let to = 0;
  for (let at = start; at < bytes.length; ) {
    const length = bytes[at] ?? 0;
    if (length === 0) return { text: to === 0 ? "." : SPELLED.toString("latin1", 0, to), end: at + 1 };
    const end = at + 1 + length;
    if (length > 63 || end > bytes.length || end - start >= MAX_NAME_BYTES) return undefined;
    for (at++; at < end; at++) {
      const byte = bytes[at] ?? 0;
      if (byte === DOT || byte >= FIRST_BEYOND_ASCII) return readOddName(bytes, start);
      SPELLED[to++] = byte >= FIRST_UPPER && byte <= LAST_UPPER ? byte + TO_LOWER : byte;
    }
    SPELLED[to++] = DOT;
  }
  return undefined;
}

/** The same for a name that holds more than ASCII, or a dot inside a label, which no host of the mesh does. */
function readOddName(bytes: Buffer, start: number): ReadName | undefined {
  let text = "";
  for (let at = start; at < bytes.length; ) {
    const length = bytes.readUInt8(at);
    if (length === 0) return { text, end: at + 1 };
    const end = at + 1 + length;
    if (length > 63 || end > bytes.length || end - start >= MAX_NAME_BYTES) return undefined;
    text += `${bytes
      .toString("latin1", at + 1, at + 1 + length)
      .replaceAll(".", "\\.")
      .toLowerCase()}.`;
    at = end;
  }
  return undefined;
}

/** The size in an OPT record that follows the question directly, where clients put it; 0 when there is none. */
function advertisedSize(bytes: Buffer, questionEnd: number): number {
  const onlyAdditional = bytes.readUInt32BE(6) === 0 && bytes.readUInt16BE(10) > 0;
  if (!onlyAdditional || questionEnd + 5 > bytes.length) return 0;
  const isOpt = bytes.readUInt8(questionEnd) === 0 && bytes.readUInt16BE(questionEnd + 1) === TYPE_OPT;
  return isOpt ? bytes.readUInt16BE(questionEnd + 3) : 0;
}

/** An answer without records. The question is repeated if it could be read. */
export function errorAnswer(query: Buffer, rcode: number, questionEnd = HEADER_BYTES): Buffer {
  const answer = Buffer.alloc(questionEnd);
  query.copy(answer, HEADER_BYTES, HEADER_BYTES, questionEnd);
  writeHeader(answer, query, { flags: rcode, questions: questionEnd > HEADER_BYTES ? 1 : 0, answers: 0 });
  return answer;
}

/** Resource records, ready to be sent behind any question of the same name. */
export interface Records {
  /** Always first. */
  readonly cname: Buffer | undefined;
  readonly addresses: readonly Buffer[];
}

/** An authoritative answer; records that do not fit are left out, and it says so. */
export function answer({ bytes, questionEnd }: Query, { cname, addresses }: Records, maxBytes: number): Buffer {
  const parts = cname === undefined ? addresses : [cname, ...addresses];
  let length = questionEnd;
  let count = 0;
  for (const part of parts) {
    if (length + part.length > maxBytes) break;
    length += part.length;
    count++;
  }
  const message = Buffer.allocUnsafe(length);
  bytes.copy(message, HEADER_BYTES, HEADER_BYTES, questionEnd);
  let at = questionEnd;
  for (let i = 0; i < count; i++) at += parts[i]?.copy(message, at) ?? 0;
  const flags = FLAG_AUTHORITATIVE | (count < parts.length ? FLAG_TRUNCATED : 0);
  writeHeader(message, bytes, { flags, questions: 1, answers: count });
  return message;
}

function writeHeader(
  message: Buffer,
  query: Buffer,
  counts: { flags: number; questions: number; answers: number },
): void {
  message.writeUInt16BE(query.readUInt16BE(0), 0);
  message.writeUInt16BE(FLAG_RESPONSE | (query.readUInt16BE(2) & REPEATED_FLAGS) | counts.flags, 2);
  message.writeUInt16BE(counts.questions, 4);
  message.writeUInt16BE(counts.answers, 6);
  message.writeUInt32BE(0, 8);
}

/** An address record. The owner is the name of the question unless it is written elsewhere. */
export function addressRecord(address: string, ownerAt = HEADER_BYTES): Buffer {
  const data = address.includes(":") ? ipv6Bytes(address) : Buffer.from(address.split(".").map(Number));
  return record(ownerAt, data.length === 4 ? TYPE_A : TYPE_AAAA, data);
}

/** A record that says the name of the question stands for another. */
export function cnameRecord(target: string): Buffer {
  return record(HEADER_BYTES, TYPE_CNAME, encodeName(target));
}

/** Where the target of the first record is written, if that is a CNAME: addresses point there rather than repeat it. */
export function cnameTargetAt({ questionEnd }: Query): number {
  return questionEnd + RECORD_HEAD_BYTES;
}

function record(ownerAt: number, type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(RECORD_HEAD_BYTES);
  head.writeUInt16BE(POINTER | ownerAt, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(CLASS_IN, 4);
  head.writeUInt32BE(TTL_SECONDS, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

/** Labels longer than the protocol allows are cut: no resolver could ask for them. */
function encodeName(name: string): Buffer {
  const labels = name.split(".").filter((label) => label !== "");
  const parts = labels.map((label) => Buffer.from(label, "latin1").subarray(0, 63));
  return Buffer.concat([...parts.flatMap((part) => [Buffer.from([part.length]), part]), Buffer.from([0])]);
}

function ipv6Bytes(address: string): Buffer {
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  const zeros = new Array<number>(Math.max(0, 8 - before.length - after.length)).fill(0);
  const bytes = Buffer.alloc(16);
  for (const [index, group] of [...before, ...zeros, ...after].slice(0, 8).entries())
    bytes.writeUInt16BE(group, index * 2);
  return bytes;
}

/** The 16-bit groups of one side of `::`; the last two may be written as an IPv4 address. */
function groups(text: string): number[] {
  return text
    .split(":")
    .filter((group) => group !== "")
    .flatMap((group) => {
      if (!group.includes(".")) return [Number.parseInt(group, 16)];
      const [a = 0, b = 0, c = 0, d = 0] = group.split(".").map(Number);
      return [a * 256 + b, c * 256 + d];
    });
}
