/** Reads DER, as far as is needed to look into a certificate that was parsed before. */

/** One value: its tag byte and what it holds. */
export interface DerItem {
  readonly tag: number;
  readonly body: Buffer;
}

/** The values that follow each other in the bytes. Throws when a length reaches beyond them. */
export function derItems(bytes: Buffer): readonly DerItem[] {
  const items: DerItem[] = [];
  for (let at = 0; at < bytes.length; ) {
    const { size, start } = readLength(bytes, at + 1);
    const end = start + size;
    if (end > bytes.length) throw new RangeError(`a DER value of ${size} bytes does not fit into ${bytes.length}`);
    items.push({ tag: bytes.readUInt8(at), body: bytes.subarray(start, end) });
    at = end;
  }
  return items;
}

/** Below 128 the byte is the length; else its low bits are the number of bytes that hold it. */
function readLength(bytes: Buffer, at: number): { readonly size: number; readonly start: number } {
  const first = bytes.readUInt8(at);
  if (first < 0x80) return { size: first, start: at + 1 };
  const count = first & 0x7f;
  if (count < 1 || count > 4) throw new RangeError(`a DER length of ${count} bytes is not supported`);
  return { size: bytes.readUIntBE(at + 1, count), start: at + 1 + count };
}
