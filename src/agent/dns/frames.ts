/** DNS over TCP: each message has its length in two bytes in front. */

/** Bytes of a message that is not complete yet. */
export interface Frames {
  pending: Buffer;
}

/** The messages that are complete with this chunk. */
export function readFrames(frames: Frames, chunk: Buffer): Buffer[] {
  let rest = frames.pending.length === 0 ? chunk : Buffer.concat([frames.pending, chunk]);
  const messages: Buffer[] = [];
  while (rest.length >= 2) {
    const end = 2 + rest.readUInt16BE(0);
    if (rest.length < end) break;
    messages.push(rest.subarray(2, end));
    rest = rest.subarray(end);
  }
  frames.pending = rest;
  return messages;
}

/** A message with its length. */
export function frame(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
