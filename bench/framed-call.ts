/**
 * One call on a connection of its own, in frames of HTTP/2 made by hand. A thousand calls by Node's own client take as much
 * CPU as the control plane that is measured beside them, and what is measured then is the client.
 */
import type { Socket } from "node:net";
import { type FramedMessage, joined, MessageSplitter, type Pieces } from "#lib/grpc/messages.ts";

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA = 0;
const HEADERS = 1;
const RESET = 3;
const SETTINGS = 4;
const PING = 6;
const GO_AWAY = 7;
const WINDOW_UPDATE = 8;
/** Flags: of headers and data, of headers, of settings and pings. */
const END_STREAM = 1;
const END_HEADERS = 4;
const ACKNOWLEDGED = 1;
const INITIAL_WINDOW_SIZE = 4;
const DEFAULT_WINDOW_BYTES = 65_535;
const HEAD_BYTES = 9;
const MAX_FRAME_BYTES = 16_384;
const CONNECTION = 0;
/** The only stream; a client's are odd. */
const STREAM = 1;

const NOTHING = Buffer.alloc(0);

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export interface CallOptions {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** How much may be on its way to us. */
  readonly windowBytes: number;
  /** In the pieces that it came in. */
  readonly message: (message: Pieces) => void;
  /** The call is over, for that reason. */
  readonly end: (reason: string) => void;
}

export class FramedCall {
  readonly #socket: Socket;
  readonly #options: CallOptions;
  readonly #splitter: MessageSplitter;
  /** The head of the frame that has begun, as far as it came. */
  #head: Buffer = NOTHING;
  /** What is missing of the data that has begun. */
  #missing = 0;
  /** What came of another frame that is not complete. */
  #rest: Buffer[] = [];
  /** Taken, and not told to the server yet. */
  #taken = 0;
  /** How much the server takes: on the stream and on the connection. */
  #room = [DEFAULT_WINDOW_BYTES, DEFAULT_WINDOW_BYTES];
  #streamWindow = DEFAULT_WINDOW_BYTES;
  #unsent: Buffer = NOTHING;

  constructor(socket: Socket, options: CallOptions) {
    const { path, headers, windowBytes, end } = options;
    this.#socket = socket;
    this.#options = options;
    this.#splitter = new MessageSplitter(-1, options.message);
    // Who gave the socket a buffer of its own to read into calls `read` itself.
    socket.on("data", (chunk) => this.read(chunk));
    socket.on("error", ({ message }) => end(message));
    socket.on("close", () => end("the connection was closed"));
    const settings = Buffer.alloc(6);
    settings.writeUInt16BE(INITIAL_WINDOW_SIZE);
    settings.writeUInt32BE(windowBytes, 2);
    const head = { ":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost" };
    const all = { ...head, "content-type": "application/grpc", te: "trailers", ...headers };
    socket.write(
      Buffer.concat([
        Buffer.from(PREFACE),
        frame({ type: SETTINGS, flags: 0, stream: CONNECTION, payload: settings }),
        windowUpdate(CONNECTION, windowBytes - DEFAULT_WINDOW_BYTES),
        frame({ type: HEADERS, flags: END_HEADERS, stream: STREAM, payload: plainHeaders(all) }),
      ]),
    );
  }

  send({ framed }: FramedMessage): void {
    this.#unsent = this.#unsent.length === 0 ? joined(framed) : Buffer.concat([this.#unsent, ...framed]);
    this.#write();
  }

  #write(): void {
    while (this.#unsent.length > 0) {
      const [connection = 0, stream = 0] = this.#room;
      const length = Math.min(this.#unsent.length, MAX_FRAME_BYTES, connection, stream);
      if (length <= 0) return;
      const payload = this.#unsent.subarray(0, length);
      this.#unsent = length === this.#unsent.length ? NOTHING : this.#unsent.subarray(length);
      this.#room[CONNECTION] = connection - length;
      this.#room[STREAM] = stream - length;
      this.#socket.write(frame({ type: DATA, flags: 0, stream: STREAM, payload }));
    }
  }

  /** Data are passed on as they come: joining the chunks of a large response would cost more than all the rest. */
  read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.#head.length < HEAD_BYTES) {
        const piece = chunk.subarray(at, at + HEAD_BYTES - this.#head.length);
        this.#head = this.#head.length === 0 ? piece : Buffer.concat([this.#head, piece]);
        at += piece.length;
        if (this.#head.length < HEAD_BYTES) return;
        this.#missing = this.#head.readUIntBE(0, 3);
      }
      const piece = chunk.subarray(at, at + this.#missing);
      at += piece.length;
      this.#missing -= piece.length;
      if (this.#head[3] === DATA) this.#takeData(piece);
      else this.#rest.push(piece);
      if (this.#missing > 0) return;
      this.#finish();
    }
  }

  #finish(): void {
    const [type = 0, flags = 0] = this.#head.subarray(3);
    const stream = this.#head.readUInt32BE(5) & 0x7fff_ffff;
    const payload = this.#rest.length === 0 ? NOTHING : joined(this.#rest);
    this.#head = NOTHING;
    if (this.#rest.length > 0) this.#rest = [];
    this.#take({ type, flags, stream, payload });
  }

  #take({ type, flags, stream, payload }: Frame): void {
    const { end } = this.#options;
    if (type === SETTINGS && (flags & ACKNOWLEDGED) === 0) this.#takeSettings(payload);
    else if (type === PING && (flags & ACKNOWLEDGED) === 0)
      this.#socket.write(frame({ type: PING, flags: ACKNOWLEDGED, stream: CONNECTION, payload }));
    else if (type === WINDOW_UPDATE) this.#widen(stream, payload.readUInt32BE());
    else if (type === RESET || type === GO_AWAY) end(`the server gave up: ${payload.toString("latin1")}`);
    const isLast = (type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0;
    if (isLast) end("the server ended the call");
  }

  #takeData(payload: Buffer): void {
    this.#splitter.push(payload);
    this.#taken += payload.length;
    if (this.#taken < this.#options.windowBytes / 2) return;
    const updates = [CONNECTION, STREAM].map((stream) => windowUpdate(stream, this.#taken));
    this.#taken = 0;
    this.#socket.write(Buffer.concat(updates));
  }

  #takeSettings(payload: Buffer): void {
    for (let at = 0; at < payload.length; at += 6) {
      if (payload.readUInt16BE(at) !== INITIAL_WINDOW_SIZE) continue;
      const before = this.#streamWindow;
      this.#streamWindow = payload.readUInt32BE(at + 2);
      this.#widen(STREAM, this.#streamWindow - before);
    }
    const none = Buffer.alloc(0);
    this.#socket.write(frame({ type: SETTINGS, flags: ACKNOWLEDGED, stream: CONNECTION, payload: none }));
  }

  #widen(stream: number, bytes: number): void {
    this.#room[stream] = (this.#room[stream] ?? 0) + bytes;
    this.#write();
  }
}

function frame({ type, flags, stream, payload }: Frame): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(stream, 5);
  bytes.set(payload, HEAD_BYTES);
  return bytes;
}

function windowUpdate(stream: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame({ type: WINDOW_UPDATE, flags: 0, stream, payload });
}

/** Each as a name and a value that nobody needs to remember, as RFC 7541 6.2.2 has it. */
function plainHeaders(headers: Readonly<Record<string, string>>): Buffer {
  const fields = Object.entries(headers).map(([name, value]) => [Buffer.of(0), plainText(name), plainText(value)]);
  return Buffer.concat(fields.flat());
}

/** A length, with 7 bits in its first byte, and the text. */
function plainText(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  const length = bytes.length < 127 ? [bytes.length] : [127, ...continued(bytes.length - 127)];
  return Buffer.concat([Buffer.from(length), bytes]);
}

function continued(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...continued(value >>> 7)];
}
