/** The two kinds of xDS streams. Envoy's messages pass as bytes; only their type is read, and our own few are written. */
import { readMessage, readString } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { EMPTY_REQUEST, formatDeltaRequest } from "#protocol/delta-request.ts";
import { parseDeltaResponse } from "#protocol/delta-response.ts";

/** A response that ends in the agent. */
export interface OwnResponse {
  readonly typeUrl: string;
  readonly version: string;
  readonly nonce: string;
  /** The first resource, as an encoded message; types of our own have only one. */
  readonly resource: Uint8Array | undefined;
}

export interface StreamKind {
  readonly method: "DeltaAggregatedResources" | "StreamAggregatedResources";
  requestType(request: Uint8Array): string;
  responseType(response: Uint8Array): string;
  parseResponse(response: Uint8Array): OwnResponse;
  /** A request for all resources of a type. */
  subscription(typeUrl: string): Buffer;
  /** The answer to a response; `error` refuses it. */
  acknowledgement(response: OwnResponse, error: string | undefined): Buffer;
}

const INTERNAL_ERROR = 13;

export const DELTA: StreamKind = {
  method: "DeltaAggregatedResources",
  requestType: (request) => stringField(request, 2),
  responseType: (response) => stringField(response, 4),
  parseResponse: (response) => {
    const { typeUrl, systemVersion, nonce, resources } = parseDeltaResponse(response);
    return { typeUrl, version: systemVersion, nonce, resource: resources[0]?.value };
  },
  subscription: (typeUrl) => Buffer.from(formatDeltaRequest({ ...EMPTY_REQUEST, typeUrl })),
  acknowledgement: ({ typeUrl, nonce }, error) =>
    Buffer.from(
      formatDeltaRequest({
        ...EMPTY_REQUEST,
        typeUrl,
        nonce,
        error: error === undefined ? undefined : { code: INTERNAL_ERROR, message: error },
      }),
    ),
};

export const SOTW: StreamKind = {
  method: "StreamAggregatedResources",
  requestType: (request) => stringField(request, 4),
  responseType: (response) => stringField(response, 4),
  parseResponse: (response) => {
    const resources: Uint8Array[] = [];
    readMessage(response, { bytes: { 2: (any) => void resources.push(any) } });
    const [any] = resources;
    return {
      typeUrl: stringField(response, 4),
      version: stringField(response, 1),
      nonce: stringField(response, 5),
      resource: any === undefined ? undefined : bytesField(any, 2),
    };
  },
  subscription: (typeUrl) => Buffer.from(new MessageWriter().string(4, typeUrl).finish()),
  acknowledgement: ({ typeUrl, version, nonce }, error) => {
    const writer = new MessageWriter().string(1, version).string(4, typeUrl).string(5, nonce);
    if (error !== undefined) writer.bytes(6, new MessageWriter().varint(1, INTERNAL_ERROR).string(2, error).finish());
    return Buffer.from(writer.finish());
  },
};

function stringField(message: Uint8Array, field: number): string {
  return readString(bytesField(message, field) ?? new Uint8Array());
}

function bytesField(message: Uint8Array, field: number): Uint8Array | undefined {
  let found: Uint8Array | undefined;
  readMessage(message, {
    bytes: {
      [field]: (value) => {
        found = value;
      },
    },
  });
  return found;
}
