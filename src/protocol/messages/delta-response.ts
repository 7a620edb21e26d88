/**
 * `envoy.service.discovery.v3.DeltaDiscoveryResponse`. Its resources are framed once, when they are built, and from then
 * on only copied: a response is the concatenation of frames and a few strings.
 */
import { fieldHead } from "#lib/wire/fields.ts";
import { inPieces } from "#lib/wire/pieces.ts";
import { readMessage, readString } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";

export interface DeltaResponse {
  readonly typeUrl: string;
  readonly nonce: string;
  /** Version of the configuration as a whole, for people; each resource has its own. */
  readonly systemVersion: string;
  /** Frames made by `resourceFrame`. */
  readonly resources: readonly Uint8Array[];
  readonly removed: readonly string[];
  /** Who answers; empty to leave it out. */
  readonly controlPlane: string;
}

/** What a response says, for those who pass it on or read it. */
export interface DeltaEnvelope {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly systemVersion: string;
  readonly resources: readonly DeltaResource[];
  readonly removed: readonly string[];
}

export interface DeltaResource {
  readonly name: string;
  readonly version: string;
  /** The encoded message inside the `Any`. */
  readonly value: Uint8Array;
}

/** One entry of a response's `resources`, with its field tag and length. The message is the end of it. */
export function resourceFrame(typeUrl: string, { name, version, value }: DeltaResource): Uint8Array {
  return concat([resourceHead(typeUrl, { name, version, length: value.length }), value]);
}

/** All of such an entry that stands before the message, which has that length. */
export function resourceHead(
  typeUrl: string,
  { name, version, length }: Pick<DeltaResource, "name" | "version"> & { readonly length: number },
): Uint8Array {
  const any = [new MessageWriter().string(1, typeUrl).finish(), fieldHead(2, length)];
  const own = new MessageWriter().string(1, version).string(3, name).finish();
  const entry = [own, fieldHead(2, sizeOf(any) + length), ...any];
  return concat([fieldHead(2, sizeOf(entry) + length), ...entry]);
}

function sizeOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** In memory of its own: a frame lives longer than what shares a pool with it. */
function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(sizeOf(pieces));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}

/** The bytes of a response, in a buffer of their own. */
export function formatDeltaResponse(response: DeltaResponse): Buffer {
  return Buffer.concat(fieldsOf(response));
}

/** The same in pieces: resources that are large are not copied. */
export function deltaResponsePieces(response: DeltaResponse): readonly Buffer[] {
  return inPieces(fieldsOf(response));
}

function fieldsOf(response: DeltaResponse): readonly Uint8Array[] {
  const head = new MessageWriter().string(1, response.systemVersion);
  const tail = new MessageWriter().string(4, response.typeUrl).string(5, response.nonce);
  for (const name of response.removed) tail.string(6, name);
  if (response.controlPlane !== "") tail.bytes(7, new MessageWriter().string(1, response.controlPlane).finish());
  return [head.finish(), ...response.resources, tail.finish()];
}

/** Throws on bytes that are not a message. */
export function parseDeltaResponse(bytes: Uint8Array): DeltaEnvelope {
  const envelope = { typeUrl: "", nonce: "", systemVersion: "" };
  const resources: DeltaResource[] = [];
  const removed: string[] = [];
  readMessage(bytes, {
    bytes: {
      1: (value) => {
        envelope.systemVersion = readString(value);
      },
      2: (value) => resources.push(parseResource(value)),
      4: (value) => {
        envelope.typeUrl = readString(value);
      },
      5: (value) => {
        envelope.nonce = readString(value);
      },
      6: (value) => removed.push(readString(value)),
    },
  });
  return { ...envelope, resources, removed };
}

function parseResource(bytes: Uint8Array): DeltaResource {
  const resource = { name: "", version: "", value: new Uint8Array() as Uint8Array };
  readMessage(bytes, {
    bytes: {
      1: (value) => {
        resource.version = readString(value);
      },
      2: (any) => {
        resource.value = anyValue(any);
      },
      3: (value) => {
        resource.name = readString(value);
      },
    },
  });
  return resource;
}

function anyValue(bytes: Uint8Array): Uint8Array {
  let found: Uint8Array = new Uint8Array();
  readMessage(bytes, {
    bytes: {
      2: (value) => {
        found = value;
      },
    },
  });
  return found;
}
