/** Frames of RFC 6455 with short texts in them. */
import { createHash } from "node:crypto";

const TEXT = 0x81; // the last frame of a text
const CLOSE = 0x88;
const SHORT_BYTES = 125;

/** What the server has to answer to the key of a client. */
export function acceptKey(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

export function textFrame(text: string): Buffer {
  const bytes = Buffer.from(text).subarray(0, SHORT_BYTES);
  return Buffer.concat([Buffer.from([TEXT, bytes.length]), bytes]);
}

export const CLOSE_FRAME = Buffer.from([CLOSE, 0]);

/** Texts of the whole frames in what a client has sent; undefined stands for its wish to end. `rest` is for the next time. */
export function readFrames(data: Buffer): { readonly texts: (string | undefined)[]; readonly rest: Buffer } {
  const texts: (string | undefined)[] = [];
  let rest = data;
  while (rest.length >= 6) {
    // Clients mask what they send with the four bytes before it.
    const length = (rest[1] ?? 0) & 0x7f;
    if (length > SHORT_BYTES || rest[0] === CLOSE) return { texts: [...texts, undefined], rest: Buffer.alloc(0) };
    if (rest.length < 6 + length) break;
    const mask = rest.subarray(2, 6);
    const bytes = rest.subarray(6, 6 + length).map((byte, i) => byte ^ (mask[i % 4] ?? 0));
    if (rest[0] === TEXT) texts.push(Buffer.from(bytes).toString());
    rest = rest.subarray(6 + length);
  }
  return { texts, rest };
}
