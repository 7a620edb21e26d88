import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { MessageWriter } from "./write.ts";

/** What becomes of a field that holds bytes, a string or a message; undefined leaves it out. */
export type Rewrite = (value: Uint8Array) => Uint8Array | undefined;

/**
 * A copy of a message in which some fields, by number, are replaced. All others, known or not, stay as they are and
 * where they are. Throws when the bytes are no message.
 */
export function rewriteMessage(message: Uint8Array, rewrites: Readonly<Record<number, Rewrite>>): Uint8Array {
  const reader = new BinaryReader(message);
  const parts: Uint8Array[] = [];
  let keptFrom = 0;
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [number, type] = reader.tag();
    const rewrite = type === WireType.LengthDelimited ? rewrites[number] : undefined;
    if (rewrite === undefined) {
      reader.skip(type, number);
      continue;
    }
    const value = rewrite(reader.bytes());
    parts.push(message.subarray(keptFrom, start));
    if (value !== undefined) parts.push(new MessageWriter().bytes(number, value).finish());
    keptFrom = reader.pos;
  }
  parts.push(message.subarray(keptFrom));
  return Buffer.concat(parts);
}
