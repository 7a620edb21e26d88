/**
 * `envoy.service.discovery.v3.DiscoveryResponse`, of state-of-the-world xDS. An entry of its resources is the end of an
 * entry of a delta response (see `resourceFrame`): both hold an `Any` as field 2.
 */
import { inPieces } from "#lib/wire/pieces.ts";
import { readMessage, readString } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";

export interface StateResponse {
  readonly version: string;
  readonly typeUrl: string;
  readonly nonce: string;
  /** Entries, each with its field tag and length. */
  readonly resources: readonly Uint8Array[];
  /** Who answers; empty to leave it out. */
  readonly controlPlane: string;
}

/** What a response says, for those who read it. */
export interface StateEnvelope {
  readonly version: string;
  readonly typeUrl: string;
  readonly nonce: string;
  /** The encoded messages. */
  readonly resources: readonly Uint8Array[];
}

/** One entry of a response's `resources`. */
export function stateFrame(typeUrl: string, value: Uint8Array): Uint8Array {
  const any = new MessageWriter().string(1, typeUrl).bytes(2, value).finish();
  return new MessageWriter().bytes(2, any).finish();
}

/** The same as part of an entry of a delta response, which ends with it; nothing is copied. */
export function stateFrameIn(frame: Uint8Array, typeUrl: string, value: Uint8Array): Uint8Array {
  const { length } = Buffer.from(typeUrl);
  const any = fieldSize(length) + fieldSize(value.length);
  return frame.subarray(frame.length - fieldSize(any));
}

/** The bytes of a response, in a buffer of their own. */
export function formatStateResponse(response: StateResponse): Buffer {
  return Buffer.concat(fieldsOf(response));
}

/** The same in pieces: resources that are large are not copied. */
export function stateResponsePieces(response: StateResponse): readonly Buffer[] {
  return inPieces(fieldsOf(response));
}

function fieldsOf(response: StateResponse): readonly Uint8Array[] {
  const head = new MessageWriter().string(1, response.version);
  const tail = new MessageWriter().string(4, response.typeUrl).string(5, response.nonce);
  if (response.controlPlane !== "") tail.bytes(6, new MessageWriter().string(1, response.controlPlane).finish());
  return [head.finish(), ...response.resources, tail.finish()];
}

/** Throws on bytes that are not a message. */
export function parseStateResponse(bytes: Uint8Array): StateEnvelope {
  const envelope = { version: "", typeUrl: "", nonce: "" };
  const resources: Uint8Array[] = [];
  readMessage(bytes, {
    bytes: {
      1: (value) => {
        envelope.version = readString(value);
      },
      2: (any) => readMessage(any, { bytes: { 2: (value) => resources.push(value) } }),
      4: (value) => {
        envelope.typeUrl = readString(value);
      },
      5: (value) => {
        envelope.nonce = readString(value);
      },
    },
  });
  return { ...envelope, resources };
}

/** Tag, length and content of a field with a number below 16. */
function fieldSize(length: number): number {
  let lengthBytes = 1;
  for (let rest = length >>> 7; rest > 0; rest >>>= 7) lengthBytes++;
  return 1 + lengthBytes + length;
}
