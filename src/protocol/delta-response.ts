/**
 * `envoy.service.discovery.v3.DeltaDiscoveryResponse`. Its resources are framed once, when they are built, and from then
 * on only copied: a response is the concatenation of frames and a few strings.
 */
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

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

/** One entry of a response's `resources`, with its field tag and length. */
export function resourceFrame(typeUrl: string, resource: DeltaResource): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(2, WireType.LengthDelimited).fork();
  writeString(writer, 1, resource.version);
  writer.tag(2, WireType.LengthDelimited).fork();
  writer.tag(1, WireType.LengthDelimited).string(typeUrl).tag(2, WireType.LengthDelimited).bytes(resource.value).join();
  writeString(writer, 3, resource.name);
  writer.join();
  return writer.finish();
}

/** The bytes of a response, in a buffer of their own. */
export function formatDeltaResponse(response: DeltaResponse): Buffer {
  const head = new BinaryWriter();
  writeString(head, 1, response.systemVersion);
  const tail = new BinaryWriter();
  writeString(tail, 4, response.typeUrl);
  writeString(tail, 5, response.nonce);
  for (const name of response.removed) tail.tag(6, WireType.LengthDelimited).string(name);
  if (response.controlPlane !== "") {
    tail.tag(7, WireType.LengthDelimited).fork().tag(1, WireType.LengthDelimited).string(response.controlPlane).join();
  }
  return Buffer.concat([head.finish(), ...response.resources, tail.finish()]);
}

/** Throws on bytes that are not a message. */
export function parseDeltaResponse(bytes: Uint8Array): DeltaEnvelope {
  const response = {
    typeUrl: "",
    nonce: "",
    systemVersion: "",
    resources: [] as DeltaResource[],
    removed: [] as string[],
  };
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType !== WireType.LengthDelimited) reader.skip(wireType, field);
    else if (field === 1) response.systemVersion = reader.string();
    else if (field === 2) response.resources.push(parseResource(reader.bytes()));
    else if (field === 4) response.typeUrl = reader.string();
    else if (field === 5) response.nonce = reader.string();
    else if (field === 6) response.removed.push(reader.string());
    else reader.skip(wireType, field);
  }
  return response;
}

function parseResource(bytes: Uint8Array): DeltaResource {
  const resource = { name: "", version: "", value: new Uint8Array() as Uint8Array };
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType !== WireType.LengthDelimited) reader.skip(wireType, field);
    else if (field === 1) resource.version = reader.string();
    else if (field === 2) resource.value = anyValue(reader.bytes());
    else if (field === 3) resource.name = reader.string();
    else reader.skip(wireType, field);
  }
  return resource;
}

function anyValue(bytes: Uint8Array): Uint8Array {
  const reader = new BinaryReader(bytes);
  let value: Uint8Array = new Uint8Array();
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 2 && wireType === WireType.LengthDelimited) value = reader.bytes();
    else reader.skip(wireType, field);
  }
  return value;
}

function writeString(writer: BinaryWriter, field: number, text: string): void {
  if (text !== "") writer.tag(field, WireType.LengthDelimited).string(text);
}
