/**
 * `envoy.service.discovery.v3.DeltaDiscoveryRequest`, read and written field by field: the agent passes thousands of them
 * on and must not pay for generated code.
 */
import { type FieldVisitor, readMapEntry, readMessageInto } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { formatRequestError, parseRequestError, type RequestError } from "./request-error.ts";
import { FIELD_LIMIT, readIdentifier } from "./request-limits.ts";
import { sharedTypeUrl } from "./type-urls.ts";

export interface DeltaRequest {
  /** Encoded `envoy.config.core.v3.Node`; the first request of a stream carries it, the others need not. */
  readonly node: Uint8Array | undefined;
  readonly typeUrl: string;
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
  /** What a proxy kept from an earlier stream: version by resource name. */
  readonly initialVersions: ReadonlyMap<string, string>;
  /** It kept something of which it cannot tell versions: state-of-the-world xDS has no words for them. */
  readonly keepsUnknown: boolean;
  /** Of the response this one answers; empty when it answers none. */
  readonly nonce: string;
  /** Set when that response was rejected. */
  readonly error: RequestError | undefined;
}

/** A request that asks nothing: the fields to start from. */
export const EMPTY_REQUEST: DeltaRequest = {
  node: undefined,
  typeUrl: "",
  subscribe: [],
  unsubscribe: [],
  initialVersions: new Map(),
  keepsUnknown: false,
  nonce: "",
  error: undefined,
};

/** A request while it is read. */
interface ReadRequest {
  node: Uint8Array | undefined;
  typeUrl: string;
  readonly subscribe: string[];
  readonly unsubscribe: string[];
  initialVersions: Map<string, string> | undefined;
  nonce: string;
  error: RequestError | undefined;
}

/** Made once: the answer to every response is read with it. */
const FIELDS: FieldVisitor<ReadRequest> = {
  limit: FIELD_LIMIT,
  bytes: {
    1: (value, request) => {
      request.node = value;
    },
    2: (value, request) => {
      request.typeUrl = sharedTypeUrl(readIdentifier(value));
    },
    3: (value, request) => request.subscribe.push(readIdentifier(value)),
    4: (value, request) => request.unsubscribe.push(readIdentifier(value)),
    5: (entry, request) => {
      const { key, value } = readMapEntry(entry, readIdentifier);
      request.initialVersions ??= new Map();
      request.initialVersions.set(key, readIdentifier(value));
    },
    6: (value, request) => {
      request.nonce = readIdentifier(value);
    },
    7: (value, request) => {
      request.error = parseRequestError(value);
    },
  },
};

/** Throws on bytes that are not a message, and on a message that exceeds a limit. Fields this version does not know are skipped. */
export function parseDeltaRequest(bytes: Uint8Array): DeltaRequest {
  const { node, typeUrl, nonce, error } = EMPTY_REQUEST;
  const read: ReadRequest = { node, typeUrl, subscribe: [], unsubscribe: [], initialVersions: undefined, nonce, error };
  readMessageInto(read, bytes, FIELDS);
  const { initialVersions, keepsUnknown } = EMPTY_REQUEST;
  return { ...read, initialVersions: read.initialVersions ?? initialVersions, keepsUnknown };
}

/** The bytes of a request; what is empty is left out. */
export function formatDeltaRequest(request: DeltaRequest): Uint8Array {
  const writer = new MessageWriter();
  if (request.node !== undefined) writer.bytes(1, request.node);
  writer.string(2, request.typeUrl);
  for (const name of request.subscribe) writer.string(3, name);
  for (const name of request.unsubscribe) writer.string(4, name);
  for (const [name, version] of request.initialVersions) {
    writer.bytes(5, new MessageWriter().string(1, name).string(2, version).finish());
  }
  writer.string(6, request.nonce);
  if (request.error !== undefined) writer.bytes(7, formatRequestError(request.error));
  return writer.finish();
}
