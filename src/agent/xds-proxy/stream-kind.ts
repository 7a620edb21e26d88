/** The two kinds of xDS streams. Envoy's messages pass as bytes; only their type is read, and our own few are written. */
import type { Pieces } from "#lib/grpc/messages.ts";
import { readPiecesText } from "#lib/wire/pieces.ts";
import { readField, readMessage, readText } from "#lib/wire/read.ts";
import { rewriteMessage } from "#lib/wire/rewrite.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { EMPTY_REQUEST, formatDeltaRequest } from "#protocol/messages/delta-request.ts";

/** What an answer to a response says of it. */
export interface Envelope {
  readonly typeUrl: string;
  /** Empty on delta streams, where each resource has its own. */
  readonly version: string;
  readonly nonce: string;
}

export interface StreamKind {
  readonly method: "DeltaAggregatedResources" | "StreamAggregatedResources";
  requestType(request: Pieces): string;
  /** The version that a request acknowledges; empty on delta streams. */
  requestVersion(request: Uint8Array): string;
  responseType(response: Pieces): string;
  envelope(response: Uint8Array): Envelope;
  /** The resources of a response, each an `Any`; empty where there is none in it. */
  resources(response: Uint8Array): readonly Uint8Array[];
  /** The response with others in their place, in the same order. */
  withResources(response: Uint8Array, resources: readonly Uint8Array[]): Uint8Array;
  /** A request for all resources of a type, or with an error: how the workload's health is told. */
  request(typeUrl: string, error?: string): Uint8Array;
  /** The answer to a response; `error` refuses it. */
  acknowledgement(response: Envelope, error: string | undefined): Uint8Array;
}

const INTERNAL_ERROR = 13;

export const DELTA: StreamKind = {
  method: "DeltaAggregatedResources",
  requestType: (request) => readPiecesText(request, 2),
  requestVersion: () => "",
  responseType: (response) => readPiecesText(response, 4),
  envelope: (response) => ({ typeUrl: readText(response, 4), version: "", nonce: readText(response, 5) }),
  resources: (response) => fields(response, 2).map((resource) => readField(resource, 2) ?? new Uint8Array()),
  withResources: (response, resources) => {
    const next = iterate(resources);
    return rewriteMessage(response, { 2: (resource) => rewriteMessage(resource, { 2: next }) });
  },
  request: (typeUrl, error) => deltaRequest({ typeUrl, version: "", nonce: "" }, error),
  acknowledgement: (response, error) => deltaRequest(response, error),
};

export const SOTW: StreamKind = {
  method: "StreamAggregatedResources",
  requestType: (request) => readPiecesText(request, 4),
  requestVersion: (request) => readText(request, 1),
  responseType: (response) => readPiecesText(response, 4),
  envelope: (response) => ({
    typeUrl: readText(response, 4),
    version: readText(response, 1),
    nonce: readText(response, 5),
  }),
  resources: (response) => fields(response, 2),
  withResources: (response, resources) => rewriteMessage(response, { 2: iterate(resources) }),
  request: (typeUrl, error) => sotwRequest({ typeUrl, version: "", nonce: "" }, error),
  acknowledgement: (response, error) => sotwRequest(response, error),
};

function deltaRequest({ typeUrl, nonce }: Envelope, error: string | undefined): Uint8Array {
  const status = error === undefined ? undefined : { code: INTERNAL_ERROR, message: error };
  return formatDeltaRequest({ ...EMPTY_REQUEST, typeUrl, nonce, error: status });
}

function sotwRequest({ typeUrl, version, nonce }: Envelope, error: string | undefined): Uint8Array {
  const writer = new MessageWriter().string(1, version).string(4, typeUrl).string(5, nonce);
  if (error !== undefined) writer.bytes(6, new MessageWriter().varint(1, INTERNAL_ERROR).string(2, error).finish());
  return writer.finish();
}

function fields(message: Uint8Array, field: number): readonly Uint8Array[] {
  const found: Uint8Array[] = [];
  readMessage(message, { bytes: { [field]: (value) => void found.push(value) } });
  return found;
}

function iterate(values: readonly Uint8Array[]): () => Uint8Array | undefined {
  let at = 0;
  return () => values[at++];
}
