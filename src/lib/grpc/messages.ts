/**
 * Messages on a stream of HTTP/2, each with a head of five bytes before it. What comes is never joined: a message is the
 * list of the pieces it came in, and goes out as such, so that one that is only passed on is not copied.
 */
import type { Writable } from "node:stream";
import { GrpcError, STATUS } from "./status.ts";

/** The bytes of a message, in pieces. */
export type Pieces = readonly Buffer[];

/** A compression flag and a length. */
const HEAD_BYTES = 5;
/** Smaller pieces are joined: keeping them apart costs more than copying them. */
const JOINED_BYTES = 1024;
/** TLS keeps a copy of whatever it was given and the reader has not taken yet: it is given this much at a time. */
const TLS_PART_BYTES = 256 * 1024;
/** Without TLS nothing is copied, and each part more costs a turn of the event loop. */
const PLAIN_PART_BYTES = 4 * 1024 * 1024;

const NOTHING = Buffer.alloc(0);

/** A message in one piece. */
export function joined(pieces: Pieces): Buffer {
  const [only] = pieces;
  return only !== undefined && pieces.length === 1 ? only : Buffer.concat(pieces);
}

/** Cuts what comes on a stream into messages. */
export class MessageSplitter {
  readonly #maxBytes: number;
  readonly #onMessage: (message: Pieces) => void;
  #head: Buffer = NOTHING;
  #pieces: Buffer[] = [];
  /** Of the message that has begun; undefined between messages. */
  #missing: number | undefined;
  #length = 0;

  /** Messages longer than `maxBytes` are refused; below 0 none is. */
  constructor(maxBytes: number, onMessage: (message: Pieces) => void) {
    this.#maxBytes = maxBytes;
    this.#onMessage = onMessage;
  }

  /** A message has begun and is not complete. */
  get isWithinMessage(): boolean {
    return this.#missing !== undefined || this.#head.length > 0;
  }

  /** Bytes that are kept until their message is complete. */
  get keptBytes(): number {
    return this.#missing === undefined ? this.#head.length : this.#length - this.#missing;
  }

  /** Throws what the call is to end with when this is no message that can be taken. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      // Most messages come in one piece, and their head needs none of its own.
      if (this.#missing === undefined && this.#head.length === 0 && at + HEAD_BYTES <= chunk.length) {
        this.#begin(chunk, at);
        at += HEAD_BYTES;
        continue;
      }
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
    const head = this.#head;
    this.#head = NOTHING;
    this.#begin(head, 0);
  }

  /** A message, by its head. */
  #begin(bytes: Buffer, at: number): void {
    if (bytes[at] !== 0) throw new GrpcError(STATUS.UNIMPLEMENTED, "Compressed messages are not supported");
    const length = bytes.readUInt32BE(at + 1);
    if (this.#maxBytes >= 0 && length > this.#maxBytes)
      throw new GrpcError(
        STATUS.RESOURCE_EXHAUSTED,
        `Received message larger than max (${length} vs ${this.#maxBytes})`,
      );
    this.#missing = length;
    this.#length = length;
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

/** A message with its head, made once however many get it. */
export class FramedMessage {
  /** Without the head. */
  readonly length: number;
  /** As it goes out; a short one in one piece. */
  readonly framed: Pieces;

  constructor(message: Uint8Array | Pieces) {
    const pieces = message instanceof Uint8Array ? [asBuffer(message)] : message;
    this.length = lengthOf(pieces);
    const head = Buffer.allocUnsafe(HEAD_BYTES);
    head[0] = 0;
    head.writeUInt32BE(this.length, 1);
    this.framed = this.length <= JOINED_BYTES ? [Buffer.concat([head, ...pieces])] : [head, ...pieces];
  }
}

/** What can be sent. */
export type Sendable = Uint8Array | Pieces | FramedMessage;

/** Some of a message, and who wants to know when it has gone. */
interface Part {
  readonly pieces: Pieces;
  readonly left: (() => void) | undefined;
}

export interface SenderOptions {
  /** Called when there is room again after there was none. */
  readonly onDrain?: () => void;
  /** The stream is one over TLS. */
  readonly isEncrypted: boolean;
}

/** Sends messages as they are. A long one goes in parts, each when the last has left. */
export class MessageSender {
  readonly #stream: Writable;
  readonly #partBytes: number;
  readonly #onDrain: () => void;
  /** What follows the part that is on its way. */
  readonly #waiting: Part[] = [];
  #isBusy = false;
  #isFull = false;
  #isLast = false;

  constructor(stream: Writable, { onDrain = () => undefined, isEncrypted }: SenderOptions) {
    this.#stream = stream;
    this.#onDrain = onDrain;
    this.#partBytes = isEncrypted ? TLS_PART_BYTES : PLAIN_PART_BYTES;
    stream.on("drain", () => this.#makeRoom());
  }

  /** False when nothing more should be sent for now; it may be, and is kept. `left` is called when all of it has gone. */
  send(message: Sendable, left?: () => void): boolean {
    const { framed, length } = message instanceof FramedMessage ? message : new FramedMessage(message);
    if (!this.#isBusy && length <= this.#partBytes) this.#write({ pieces: framed, left });
    else {
      const parts = partsOf(framed, this.#partBytes);
      for (const [index, part] of parts.entries())
        this.#waiting.push({ pieces: part, left: index === parts.length - 1 ? left : undefined });
      if (!this.#isBusy) this.#next();
    }
    this.#isFull ||= this.#isBusy || this.#stream.writableNeedDrain;
    return !this.#isFull;
  }

  /** Nothing comes after what was sent. */
  end(): void {
    this.#isLast = true;
    if (!this.#isBusy) this.#stream.end();
  }

  #next(): void {
    const part = this.#stream.writableEnded ? undefined : this.#waiting.shift();
    this.#isBusy = part !== undefined;
    if (part !== undefined)
      this.#write({
        ...part,
        left: () => {
          part.left?.();
          this.#next();
        },
      });
    else if (this.#isLast) this.#stream.end();
    else this.#makeRoom();
  }

  #makeRoom(): void {
    if (!this.#isFull || this.#isBusy || this.#stream.writableNeedDrain) return;
    this.#isFull = false;
    this.#onDrain();
  }

  #write({ pieces, left }: Part): void {
    const stream = this.#stream;
    const [only] = pieces;
    const done = (error?: Error | null) => {
      if (!error) left?.();
    };
    if (only !== undefined && pieces.length === 1) {
      stream.write(only, done);
      return;
    }
    stream.cork();
    for (const [index, piece] of pieces.entries()) stream.write(piece, index === pieces.length - 1 ? done : undefined);
    stream.uncork();
  }
}

/** Pieces in groups of about the same length; one that is too long is cut. */
function partsOf(pieces: Pieces, partBytes: number): Pieces[] {
  const parts: Buffer[][] = [];
  let room = 0;
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      if (room === 0) {
        parts.push([]);
        room = partBytes;
      }
      const cut = piece.subarray(at, at + room);
      parts.at(-1)?.push(cut);
      at += cut.length;
      room -= cut.length;
    }
  }
  return parts;
}

function lengthOf(pieces: Pieces): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0);
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
