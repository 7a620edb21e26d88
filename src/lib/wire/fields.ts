/** Fields of a message put together with a single copy of their bytes: some are megabytes large. */

const LENGTH_DELIMITED = 2;

/** What stands before the bytes of a string, of bytes or of a message. */
export function fieldHead(field: number, length: number): Uint8Array {
  const tag = (field << 3) | LENGTH_DELIMITED;
  const head = new Uint8Array(varintLength(tag) + varintLength(length));
  writeVarint(head, writeVarint(head, 0, tag), length);
  return head;
}

/** A message by its other fields, then each of these messages as a field of that number. */
export function withMessages(own: Uint8Array, field: number, messages: readonly Uint8Array[]): Uint8Array {
  const size = messages.reduce((sum, { length }) => sum + messageFieldLength(field, length), own.length);
  const joined = new Uint8Array(size);
  joined.set(own);
  let at = own.length;
  for (const message of messages) at = writeMessageField(joined, at, { field, message });
  return joined;
}

/** The bytes that a message of that length takes as a field. */
export function messageFieldLength(field: number, length: number): number {
  return varintLength((field << 3) | LENGTH_DELIMITED) + varintLength(length) + length;
}

/** Writes a message as a field. Returns where the next byte goes. */
export function writeMessageField(
  bytes: Uint8Array,
  start: number,
  { field, message }: { readonly field: number; readonly message: Uint8Array },
): number {
  const at = writeVarint(bytes, writeVarint(bytes, start, (field << 3) | LENGTH_DELIMITED), message.length);
  bytes.set(message, at);
  return at + message.length;
}

function varintLength(value: number): number {
  let length = 1;
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) length++;
  return length;
}

/** Returns where the next byte goes. */
function writeVarint(bytes: Uint8Array, start: number, value: number): number {
  let at = start;
  let rest = value;
  for (; rest > 127; rest >>>= 7) bytes[at++] = (rest & 127) | 128;
  bytes[at++] = rest;
  return at;
}
