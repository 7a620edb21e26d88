/**
 * Messages on a stream of HTTP/2, each with a head of five bytes before it. What comes is never joined: a message is the
 * list of the pieces it came in, and goes out as such, so that one that is only passed on is not copied.
 */
import type { Http2Stream } from "node:http2";
import { GrpcError, STATUS } from "./status.ts";

/** The bytes of a message, in pieces. */
export type Pieces = readonly Buffer[];

/** A compression flag and a length. */
const HEAD_BYTES = 5;
/** Smaller pieces are joined: keeping them apart costs more than copying them. */
const JOINED_BYTES = 1024;

/** A message in one piece. */
export function joined(pieces: Pieces): Buffer {
  const [only, ...others] = pieces;
  return only !== undefined && others.length === 0 ? only : Buffer.concat(pieces);
}

/** Cuts what comes on a stream into messages. */
export class MessageSplitter {
  readonly #maxBytes: number;
  readonly #onMessage: (message: Pieces) => void;
  #head: Buffer = Buffer.alloc(0);
  #pieces: Buffer[] = [];
  /** Of the message that has begun; undefined between messages. */
  #missing: number | undefined;

  /** Messages longer than `maxBytes` are refused; below 0 none is. */
  constructor(maxBytes: number, onMessage: (message: Pieces) => void) {
    this.#maxBytes = maxBytes;
    this.#onMessage = onMessage;
  }

  /** Throws what the call is to end with when this is no message that can be taken. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      const missing = this.#missing ?? HEAD_BYTES - this.#head.length;
      const piece = chunk.subarray(at, at + missing);
      at += piece.length;
      if (this.#missing === undefined) this.#addToHead(piece);
      else this.#add(piece, this.#missing);
    }
  }

  #addToHead(piece: Buffer): void {
    this.#head = this.#head.length === 0 ? piece : Buffer.concat([this.#head, piece]);
    if (this.#head.length < HEAD_BYTES) return;
    if (this.#head[0] !== 0) throw new GrpcError(STATUS.UNIMPLEMENTED, "Compressed messages are not supported");
    const length = this.#head.readUInt32BE(1);
    if (this.#maxBytes >= 0 && length > this.#maxBytes)
      throw new GrpcError(
        STATUS.RESOURCE_EXHAUSTED,
        `Received message larger than max (${length} vs ${this.#maxBytes})`,
      );
    this.#head = this.#head.subarray(0, 0);
    this.#missing = length;
    if (length === 0) this.#finish();
  }

  #add(piece: Buffer, missing: number): void {
    const last = this.#pieces.at(-1);
    if (last !== undefined && last.length + piece.length <= JOINED_BYTES)
      this.#pieces[this.#pieces.length - 1] = Buffer.concat([last, piece]);
    else this.#pieces.push(piece);
    this.#missing = missing - piece.length;
    if (this.#missing === 0) this.#finish();
  }

  #finish(): void {
    const message = this.#pieces;
    this.#pieces = [];
    this.#missing = undefined;
    this.#onMessage(message);
  }
}

/** Sends a message as it is. False when nothing more should be sent for now; `left` is called when all of it has gone. */
export function sendMessage(stream: Http2Stream, message: Uint8Array | Pieces, left?: () => void): boolean {
  const pieces = message instanceof Uint8Array ? [message] : message;
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head[0] = 0;
  head.writeUInt32BE(length, 1);
  if (length <= JOINED_BYTES) return stream.write(Buffer.concat([head, ...pieces]), left);
  stream.cork();
  stream.write(head);
  for (const piece of pieces) stream.write(piece, piece === pieces.at(-1) ? left : undefined);
  stream.uncork();
  return !stream.writableNeedDrain;
}
