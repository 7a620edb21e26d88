/**
 * Messages of greeter.proto as gRPC sends them: a byte that says whether it is compressed, four for the length, then the
 * message; in it, the number and type of each field before its value.
 */

/** Path of the method. */
export const SAY_HELLO = "/sample.Greeter/SayHello";

const TEXT_FIELD = 0x0a; // field 1, of type "bytes with their length"
const HEAD_BYTES = 5;

/** The message `Text`, framed. */
export function encodeText(text: string): Buffer {
  const value = Buffer.from(text);
  const message = Buffer.concat([Buffer.from([TEXT_FIELD, ...varint(value.length)]), value]);
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The text of a framed message; empty when it has none. */
export function decodeText(frame: Buffer): string {
  const message = frame.subarray(HEAD_BYTES);
  if (message[0] !== TEXT_FIELD) return "";
  let length = 0;
  let at = 1;
  for (let shift = 0; ; shift += 7) {
    const byte = message[at++] ?? 0;
    length |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return message.subarray(at, at + length).toString();
}

/** Seven bits a byte, the lowest first; the eighth says that more follow. */
function varint(number: number): number[] {
  return number < 0x80 ? [number] : [(number & 0x7f) | 0x80, ...varint(number >>> 7)];
}
