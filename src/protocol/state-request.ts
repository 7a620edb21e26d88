/**
 * `envoy.service.discovery.v3.DiscoveryRequest`, of state-of-the-world xDS: each request repeats all names that are wanted.
 * What it means beside what was said before is a delta request, so that both kinds of stream share everything else.
 */
import { readMessage } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { type DeltaRequest, EMPTY_REQUEST } from "./messages/delta-request.ts";
import { formatRequestError, parseRequestError, type RequestError } from "./messages/request-error.ts";
import { FIELD_LIMIT, readIdentifier } from "./messages/request-limits.ts";
import { sharedTypeUrl } from "./messages/type-urls.ts";
import type { Resource } from "./resource.ts";
import type { Subscription } from "./subscription.ts";

export interface StateRequest {
  /** Version of the last response that was accepted, maybe on an earlier stream; we go by the nonce. */
  readonly version: string;
  /** Encoded `envoy.config.core.v3.Node`; the first request of a stream carries it, the others need not. */
  readonly node: Uint8Array | undefined;
  readonly names: readonly string[];
  readonly typeUrl: string;
  /** Of the last response that came; empty when none has. */
  readonly nonce: string;
  /** Set when that response was rejected. */
  readonly error: RequestError | undefined;
}

/** A request that asks nothing: the fields to start from. */
export const EMPTY_STATE_REQUEST: StateRequest = {
  version: "",
  node: undefined,
  names: [],
  typeUrl: "",
  nonce: "",
  error: undefined,
};

/** Throws on bytes that are not a message, and on a message that exceeds a limit. Fields this version does not know are skipped. */
export function parseStateRequest(bytes: Uint8Array): StateRequest {
  const names: string[] = [];
  let { version, node, typeUrl, nonce, error } = EMPTY_STATE_REQUEST;
  readMessage(bytes, {
    limit: FIELD_LIMIT,
    bytes: {
      1: (value) => {
        version = readIdentifier(value);
      },
      2: (value) => {
        node = value;
      },
      3: (value) => names.push(readIdentifier(value)),
      4: (value) => {
        typeUrl = sharedTypeUrl(readIdentifier(value));
      },
      5: (value) => {
        nonce = readIdentifier(value);
      },
      6: (value) => {
        error = parseRequestError(value);
      },
    },
  });
  return { version, node, names, typeUrl, nonce, error };
}

/** The bytes of a request; what is empty is left out. */
export function formatStateRequest(request: StateRequest): Uint8Array {
  const writer = new MessageWriter().string(1, request.version);
  if (request.node !== undefined) writer.bytes(2, request.node);
  for (const name of request.names) writer.string(3, name);
  writer.string(4, request.typeUrl).string(5, request.nonce);
  if (request.error !== undefined) writer.bytes(6, formatRequestError(request.error));
  return writer.finish();
}

/** What a request says beyond what is known of its type; undefined when it is the first of the type. */
export function toDelta<R extends Resource>(request: StateRequest, known: Subscription<R> | undefined): DeltaRequest {
  const { node, typeUrl, error } = request;
  const keepsUnknown = request.version !== "";
  if (known === undefined) return { ...EMPTY_REQUEST, node, typeUrl, subscribe: request.names, keepsUnknown, error };
  const names = new Set(request.names);
  // Without names everything is wanted, unless names were given before: then nothing is.
  const wantsAll = names.delete("*") || (known.wildcard && names.size === 0);
  // A request that knows of no response is a first one, and is answered as such.
  const had = request.nonce === "" ? { names: new Set<string>(), wildcard: false } : known;
  return {
    ...EMPTY_REQUEST,
    node,
    typeUrl,
    subscribe: [...(wantsAll && !had.wildcard ? ["*"] : []), ...names.difference(had.names)],
    unsubscribe: [...(known.wildcard && !wantsAll ? ["*"] : []), ...known.names.difference(names)],
    nonce: isAnswered(known, request.nonce) ? "" : request.nonce,
    error,
  };
}

/** Every request carries the last nonce, also those that only change names. */
function isAnswered<R extends Resource>({ sent, pending, overdue }: Subscription<R>, nonce: string): boolean {
  return nonce === sent && pending === undefined && overdue.every((response) => response.nonce !== nonce);
}
