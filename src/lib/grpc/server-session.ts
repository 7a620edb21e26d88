/** HTTP/2 connections of the gRPC server, with limits on what a peer may make them keep or do. */
import { performServerHandshake, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/**
 * What nghttp2 may keep for one connection, in megabytes. Most of it is outgoing: the control plane hands over at most 16 MB
 * plus one part of 4 MB of responses at a time, over all connections.
 */
const SESSION_MEGABYTES = 64;
/** Tokens, and what a proxy says about its client's certificates, are a few kilobytes. */
const MAX_HEADER_BYTES = 16 * 1024;
/** Settings in one frame; HTTP/2 defines six, and extensions add a few. */
const MAX_SETTINGS = 32;
/** Streams that a peer may reset at once, and then per second. */
const RESET_BURST = 200;
const RESETS_PER_SECOND = 33;
/** The largest value of the setting. */
export const UNLIMITED_STREAMS = 2 ** 32 - 1;
/** Streams may never end by themselves: a connection that was told to go is cut after this time. */
const AGE_GRACE_MS = 10_000;
/** Connections that came together go apart from each other, by up to this share of their age. */
const AGE_JITTER = 0.1;

/** Speaks HTTP/2 on a connection. */
export function openSession(connection: Socket, maxStreams: number | undefined): ServerHttp2Session {
  const session = performServerHandshake(connection, {
    maxSessionMemory: SESSION_MEGABYTES,
    maxSettings: MAX_SETTINGS,
    streamResetBurst: RESET_BURST,
    streamResetRate: RESETS_PER_SECOND,
    settings: { maxHeaderListSize: MAX_HEADER_BYTES, maxConcurrentStreams: maxStreams ?? UNLIMITED_STREAMS },
  });
  // A peer that breaks the protocol is cut off by Node; its calls end by their "close".
  session.on("error", () => undefined);
  return session;
}

/** Tells a connection to go; it may be on its way already. */
export function closed(session: ServerHttp2Session): Promise<void> {
  return new Promise((resolve) => {
    session.on("close", resolve);
    session.close();
  });
}

/** Tells a connection to go when it is old. */
export function limitAge(session: ServerHttp2Session, maxAgeMs: number): void {
  const age = maxAgeMs * (1 + (2 * Math.random() - 1) * AGE_JITTER);
  let timer = setTimeout(() => {
    timer = setTimeout(() => session.destroy(), AGE_GRACE_MS).unref();
    session.close();
  }, age).unref();
  session.on("close", () => clearTimeout(timer));
}
