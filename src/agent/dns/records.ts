/** The records of a DNS message: where they are, and whether what is in them can be read. */
import { TYPE_A, TYPE_AAAA, TYPE_CNAME } from "./message.ts";

export interface ReadRecord {
  readonly nameAt: number;
  readonly type: number;
  readonly ttlAt: number;
  readonly ttl: number;
  readonly dataAt: number;
  readonly dataEnd: number;
}

/** Of a name on the wire, by the protocol. */
const MAX_NAME_BYTES = 255;
/** More than a name with labels of one letter could have. */
const MAX_POINTERS = 126;

/** All records; undefined when the message is broken. Pointers are never followed here, so they cannot go round. */
export function readRecords(bytes: Buffer, start: number): readonly ReadRecord[] | undefined {
  const count = bytes.readUInt16BE(6) + bytes.readUInt16BE(8) + bytes.readUInt16BE(10);
  const records: ReadRecord[] = [];
  let at = start;
  for (let i = 0; i < count; i++) {
    const end = nameEnd(bytes, at);
    if (end === undefined || end + 10 > bytes.length) return undefined;
    const dataAt = end + 10;
    const dataEnd = dataAt + bytes.readUInt16BE(end + 8);
    if (dataEnd > bytes.length) return undefined;
    const ttlAt = end + 4;
    records.push({ nameAt: at, type: bytes.readUInt16BE(end), ttlAt, ttl: bytes.readUInt32BE(ttlAt), dataAt, dataEnd });
    at = dataEnd;
  }
  return records;
}

function nameEnd(bytes: Buffer, start: number): number | undefined {
  for (let at = start; at < bytes.length; ) {
    const length = bytes.readUInt8(at);
    if (length === 0) return at + 1;
    if (length >= 0xc0) return at + 2 <= bytes.length ? at + 2 : undefined;
    if (length > 63) return undefined;
    at += 1 + length;
  }
  return undefined;
}

/** What the data of a type consists of: bytes, then names, then bytes again. */
interface Layout {
  readonly before: number;
  readonly names: number;
  readonly after: number;
}

const ONE_NAME: Layout = { before: 0, names: 1, after: 0 };
/** Types that resolvers take apart, or in which names may be pointers; what others hold is their reader's business. */
const LAYOUTS: ReadonlyMap<number, Layout> = new Map([
  [TYPE_A, { before: 4, names: 0, after: 0 }],
  [2 /* NS */, ONE_NAME],
  [TYPE_CNAME, ONE_NAME],
  [6 /* SOA */, { before: 0, names: 2, after: 20 }],
  [12 /* PTR */, ONE_NAME],
  [15 /* MX */, { before: 2, names: 1, after: 0 }],
  [TYPE_AAAA, { before: 16, names: 0, after: 0 }],
  [33 /* SRV */, { before: 6, names: 1, after: 0 }],
  [39 /* DNAME */, ONE_NAME],
]);

const TYPE_TXT = 16;

/** Whether the names of a record lead somewhere and its data has the form of its type. */
export function isReadable(bytes: Buffer, { nameAt, type, dataAt, dataEnd }: ReadRecord): boolean {
  if (wholeNameEnd(bytes, nameAt) === undefined) return false;
  if (type === TYPE_TXT) return areTexts(bytes, dataAt, dataEnd);
  const layout = LAYOUTS.get(type);
  if (layout === undefined || dataAt === dataEnd) return true;
  // Nothing in a record is behind it.
  const record = bytes.subarray(0, dataEnd);
  let at: number | undefined = dataAt + layout.before;
  for (let i = 0; i < layout.names && at !== undefined; i++) at = wholeNameEnd(record, at);
  return at !== undefined && at + layout.after === dataEnd;
}

/** Texts, each with its length before it, and nothing else. */
function areTexts(bytes: Buffer, start: number, end: number): boolean {
  let at = start;
  while (at < end) at += 1 + bytes.readUInt8(at);
  return at === end;
}

/** Where a name ends; undefined unless it can be read to the end through all of its pointers. */
function wholeNameEnd(bytes: Buffer, start: number): number | undefined {
  let end: number | undefined;
  let pointers = 0;
  let nameBytes = 1;
  for (let at = start; at < bytes.length; ) {
    const length = bytes.readUInt8(at);
    if (length === 0) return end ?? at + 1;
    if (length < 0xc0) {
      nameBytes += length + 1;
      if (length > 63 || nameBytes > MAX_NAME_BYTES) return undefined;
      at += 1 + length;
      continue;
    }
    if (at + 2 > bytes.length || ++pointers > MAX_POINTERS) return undefined;
    end ??= at + 2;
    at = bytes.readUInt16BE(at) & 0x3fff;
  }
  return undefined;
}
