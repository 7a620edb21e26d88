/** HTTP/2 frames as bytes, for what no client library sends. */

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Frame types of RFC 9113. */
export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  RST_STREAM: 3,
  SETTINGS: 4,
  PING: 6,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;
export const FLAG = { END_STREAM: 1, ACK: 1, END_HEADERS: 4 } as const;
/** Identifiers of settings. */
export const SETTING = { HEADER_TABLE_SIZE: 1, INITIAL_WINDOW_SIZE: 4 } as const;

export interface Frame {
  readonly type: number;
  readonly flags?: number;
  readonly stream?: number;
  readonly payload?: Buffer;
}

export function formatFrame({ type, flags = 0, stream = 0, payload = Buffer.alloc(0) }: Frame): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function formatSettings(settings: Readonly<Record<number, number>> = {}): Buffer {
  const entries = Object.entries(settings).map(([id, value]) => {
    const entry = Buffer.alloc(6);
    entry.writeUInt16BE(Number(id), 0);
    entry.writeUInt32BE(value, 2);
    return entry;
  });
  return formatFrame({ type: FRAME.SETTINGS, payload: Buffer.concat(entries) });
}

/** HPACK: literal fields with new names, not indexed and without Huffman coding. */
export function formatFields(fields: readonly (readonly [name: string, value: string])[], isIndexed = false): Buffer {
  const parts = fields.flatMap(([name, value]) => [Buffer.from([isIndexed ? 0x40 : 0]), text(name), text(value)]);
  return Buffer.concat(parts);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest >>= 7) length.push((rest & 127) | 128);
  length.push(rest);
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** Header block of a gRPC call. */
export function callFields(path: string, more: readonly (readonly [string, string])[] = []): Buffer {
  return formatFields([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "localhost"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ...more,
  ]);
}

/** Head of a gRPC message of that length, and what is sent of it. */
export function partOfMessage(length: number, sent: number): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, Buffer.alloc(sent, 0x20)]);
}
