import type { Readable, Writable } from "node:stream";
import { localRequestProblem } from "#lib/net/local-request.ts";

/** A request as a handler sees it. */
export interface IncomingRequest {
  readonly method: string;
  readonly path: string;
  /** With its `?`. */
  readonly query: string;
  /** Address of the caller. */
  readonly peer: string;
  readonly fromLoopback: boolean;
  /** Account that owns the other end of the connection; undefined when it is not certain. */
  readonly callerAccount: () => Promise<number | undefined>;
  /** All values of each header, by lower-case name. */
  readonly headers: Readonly<Record<string, string[] | undefined>>;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
  /** Closes the connection. */
  readonly cut: () => void;
}

/** What a handler answers: a plain value, which costs no memory and is tested without a socket. */
export interface Answer {
  readonly status: number;
  /** Text or bytes, a stream, or what writes it as there is room. */
  readonly body?: string | Buffer | Readable | ((sink: Writable) => Promise<void>);
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log, not for the caller. */
  readonly problem?: string;
}

/** The refusal of a request that may only come from the same machine, or only by POST; undefined when it is in order. */
export function refusal(
  { method, fromLoopback, headers }: IncomingRequest,
  wanted: { readonly method?: string },
): Answer | undefined {
  if (!fromLoopback) return { status: 403, body: "Only requests from localhost are allowed\n" };
  const problem = localRequestProblem(headers);
  if (problem !== undefined) return { status: 403, body: `Only requests of local programs are allowed: ${problem}\n` };
  if (wanted.method !== undefined && method !== wanted.method) return { status: 405, body: "Method Not Allowed\n" };
  return undefined;
}
