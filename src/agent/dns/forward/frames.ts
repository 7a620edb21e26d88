/** DNS over TCP: each message has its length in two bytes in front. */

const LENGTH_BYTES = 2;

/** Cuts what comes over a connection into messages. Pieces are joined once per message, so single bytes cost no more. */
export class FrameReader {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether a message has begun and not ended. */
  get isPartial(): boolean {
    return this.#bytes > 0;
  }

  /** The messages that are complete with this chunk; undefined when one is too long. */
  read(chunk: Buffer): readonly Buffer[] | undefined {
    this.#pieces.push(chunk);
    this.#bytes += chunk.length;
    const messages: Buffer[] = [];
    for (let length = this.#length(); length !== undefined; length = this.#length()) {
      if (length > this.#maxBytes) return undefined;
      if (this.#bytes < LENGTH_BYTES + length) break;
      const all = this.#joined();
      const end = LENGTH_BYTES + length;
      messages.push(all.subarray(LENGTH_BYTES, end));
      this.#bytes = all.length - end;
      this.#pieces = this.#bytes === 0 ? [] : [all.subarray(end)];
    }
    return messages;
  }

  /** Of the message that has begun; undefined while it is not known. */
  #length(): number | undefined {
    if (this.#bytes < LENGTH_BYTES) return undefined;
    const first = this.#pieces[0];
    return (first !== undefined && first.length >= LENGTH_BYTES ? first : this.#joined()).readUInt16BE(0);
  }

  #joined(): Buffer {
    const [only] = this.#pieces;
    if (only !== undefined && this.#pieces.length === 1) return only;
    const all = Buffer.concat(this.#pieces);
    this.#pieces = [all];
    return all;
  }
}

/** A message with its length. */
export function frame(message: Buffer): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
