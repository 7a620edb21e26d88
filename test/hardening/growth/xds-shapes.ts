/** Discovery requests in shapes that are expensive for servers with hidden loops, recursion or unbounded state. */
import { create, toBinary } from "@bufbuild/protobuf";
import { NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { EMPTY_REQUEST, formatDeltaRequest } from "#protocol/messages/delta-request.ts";
import { EMPTY_STATE_REQUEST, formatStateRequest } from "#protocol/state-request.ts";
import { doublings } from "./growth.ts";

const ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/";
export const DELTA = `${ADS}DeltaAggregatedResources`;
const STATE = `${ADS}StreamAggregatedResources`;
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
const CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const NODE = toBinary(NodeSchema, create(NodeSchema, { id: "sidecar~10.1.0.1~a.default~default.svc.cluster.local" }));
const names = (count: number) => Array.from({ length: count }, (_, i) => `outbound|80||s${i}.example.com`);

export interface XdsShape {
  readonly sizes: readonly number[];
  /** What is sent on one stream: as many messages as the size says, or messages of that many bytes. */
  readonly messages: (size: number) => readonly Uint8Array[];
  /** A method other than that for delta requests. */
  readonly method?: string;
}

/** By name. */
export const XDS_SHAPES: Readonly<Record<string, XdsShape>> = {
  "many unknown types": {
    sizes: doublings(1_250, 20_000),
    messages: (count) => Array.from({ length: count }, (_, i) => delta({ typeUrl: `t${i}` })),
  },
  "many unknown types, state of the world": {
    sizes: doublings(1_250, 20_000),
    messages: (count) => Array.from({ length: count }, (_, i) => state({ typeUrl: `t${i}` })),
    method: STATE,
  },
  "many requests of one type": {
    sizes: doublings(1_250, 10_000),
    messages: (count) => Array.from({ length: count }, () => delta({})),
  },
  "many names": { sizes: doublings(8_000, 128_000), messages: (count) => [delta({ subscribe: names(count) })] },
  "the same name": {
    sizes: doublings(8_000, 128_000),
    messages: (count) => [delta({ subscribe: new Array<string>(count).fill("a") })],
  },
  "one long name": {
    sizes: doublings(256 * 1024, MAX_MESSAGE_BYTES / 2),
    messages: (bytes) => [delta({ subscribe: ["a".repeat(bytes)] })],
  },
  "many names that are unsubscribed": {
    sizes: doublings(12_000, 96_000),
    messages: (count) => [delta({ subscribe: names(count) }), delta({ unsubscribe: names(count) })],
  },
  "many initial versions": {
    sizes: doublings(8_000, 128_000),
    messages: (count) => [delta({ initialVersions: new Map(names(count).map((name) => [name, "1"])) })],
  },
  "a long node id": {
    sizes: doublings(256 * 1024, MAX_MESSAGE_BYTES / 2),
    messages: (bytes) => [delta({ node: new MessageWriter().string(1, `sidecar~${"~".repeat(bytes)}`).finish() })],
  },
  "deep metadata": {
    sizes: doublings(500, 4_000),
    messages: (depth) => [delta({ node: new MessageWriter().bytes(3, nestedStruct(depth)).finish() })],
  },
  "unclosed groups": {
    sizes: doublings(256 * 1024, MAX_MESSAGE_BYTES / 2),
    messages: (bytes) => [Buffer.alloc(bytes, 0x0b)],
  },
  "many unknown fields": {
    sizes: doublings(256 * 1024, MAX_MESSAGE_BYTES / 2),
    messages: (bytes) => [Buffer.alloc(bytes, Buffer.from([0x78, 1]))],
  },
};

function delta(fields: Partial<Parameters<typeof formatDeltaRequest>[0]>): Uint8Array {
  return formatDeltaRequest({ ...EMPTY_REQUEST, node: NODE, typeUrl: CLUSTER, ...fields });
}

function state(fields: Partial<Parameters<typeof formatStateRequest>[0]>): Uint8Array {
  return formatStateRequest({ ...EMPTY_STATE_REQUEST, node: NODE, typeUrl: CLUSTER, ...fields });
}

/** A `google.protobuf.Struct` whose only field holds a Struct, and so on. */
function nestedStruct(depth: number): Uint8Array {
  let struct: Uint8Array = new Uint8Array();
  for (let i = 0; i < depth; i++) {
    const value = new MessageWriter().bytes(5, struct).finish();
    struct = new MessageWriter().bytes(1, new MessageWriter().string(1, "a").bytes(2, value).finish()).finish();
  }
  return struct;
}
