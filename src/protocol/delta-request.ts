/**
 * `envoy.service.discovery.v3.DeltaDiscoveryRequest`, read and written field by field: the agent passes thousands of them
 * on and must not pay for generated code.
 */
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

export interface DeltaRequest {
  /** Encoded `envoy.config.core.v3.Node`; the first request of a stream carries it, the others need not. */
  readonly node: Uint8Array | undefined;
  readonly typeUrl: string;
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
  /** What a proxy kept from an earlier stream: version by resource name. */
  readonly initialVersions: ReadonlyMap<string, string>;
  /** Of the response this one answers; empty when it answers none. */
  readonly nonce: string;
  /** Set when that response was rejected. */
  readonly error: RequestError | undefined;
}

export interface RequestError {
  readonly code: number;
  readonly message: string;
}

const NO_NAMES: readonly string[] = [];
const NO_VERSIONS: ReadonlyMap<string, string> = new Map();

/** A request that asks nothing: the fields to start from. */
export const EMPTY_REQUEST: DeltaRequest = {
  node: undefined,
  typeUrl: "",
  subscribe: NO_NAMES,
  unsubscribe: NO_NAMES,
  initialVersions: NO_VERSIONS,
  nonce: "",
  error: undefined,
};

/** Throws on bytes that are not a message. Fields this version does not know are skipped. */
export function parseDeltaRequest(bytes: Uint8Array): DeltaRequest {
  const request = {
    ...EMPTY_REQUEST,
    subscribe: [] as string[],
    unsubscribe: [] as string[],
    initialVersions: new Map(),
  };
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, field);
      continue;
    }
    if (field === 1) request.node = reader.bytes();
    else if (field === 2) request.typeUrl = reader.string();
    else if (field === 3) request.subscribe.push(reader.string());
    else if (field === 4) request.unsubscribe.push(reader.string());
    else if (field === 5) addVersion(request.initialVersions, reader.bytes());
    else if (field === 6) request.nonce = reader.string();
    else if (field === 7) request.error = parseStatus(reader.bytes());
    else reader.skip(wireType, field);
  }
  return request;
}

/** The bytes of a request; what is empty is left out. */
export function formatDeltaRequest(request: DeltaRequest): Uint8Array {
  const writer = new BinaryWriter();
  if (request.node !== undefined) writer.tag(1, WireType.LengthDelimited).bytes(request.node);
  writeString(writer, 2, request.typeUrl);
  for (const name of request.subscribe) writer.tag(3, WireType.LengthDelimited).string(name);
  for (const name of request.unsubscribe) writer.tag(4, WireType.LengthDelimited).string(name);
  for (const [name, version] of request.initialVersions) {
    writer.tag(5, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.LengthDelimited).string(name).tag(2, WireType.LengthDelimited).string(version).join();
  }
  writeString(writer, 6, request.nonce);
  if (request.error !== undefined) {
    writer.tag(7, WireType.LengthDelimited).fork();
    if (request.error.code !== 0) writer.tag(1, WireType.Varint).int32(request.error.code);
    writeString(writer, 2, request.error.message);
    writer.join();
  }
  return writer.finish();
}

function addVersion(versions: Map<string, string>, entry: Uint8Array): void {
  const reader = new BinaryReader(entry);
  let name = "";
  let version = "";
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1 && wireType === WireType.LengthDelimited) name = reader.string();
    else if (field === 2 && wireType === WireType.LengthDelimited) version = reader.string();
    else reader.skip(wireType, field);
  }
  versions.set(name, version);
}

/** `google.rpc.Status` */
function parseStatus(bytes: Uint8Array): RequestError {
  const reader = new BinaryReader(bytes);
  let code = 0;
  let message = "";
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1 && wireType === WireType.Varint) code = reader.int32();
    else if (field === 2 && wireType === WireType.LengthDelimited) message = reader.string();
    else reader.skip(wireType, field);
  }
  return { code, message };
}

function writeString(writer: BinaryWriter, field: number, text: string): void {
  if (text !== "") writer.tag(field, WireType.LengthDelimited).string(text);
}
