/** Messages of all types that we know, from and to canonical proto JSON. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  createFileRegistry,
  createRegistry,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  type Registry,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import {
  AnySchema,
  BoolValueSchema,
  BytesValueSchema,
  DoubleValueSchema,
  DurationSchema,
  EmptySchema,
  FileDescriptorSetSchema,
  FloatValueSchema,
  Int32ValueSchema,
  Int64ValueSchema,
  ListValueSchema,
  StringValueSchema,
  StructSchema,
  TimestampSchema,
  UInt32ValueSchema,
  UInt64ValueSchema,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";

/** Full message name by the name that a kind of resource has in the data. */
export const RESOURCE_TYPES: Readonly<Record<string, string>> = {
  clusters: "envoy.config.cluster.v3.Cluster",
  listeners: "envoy.config.listener.v3.Listener",
  routes: "envoy.config.route.v3.RouteConfiguration",
  endpoints: "envoy.config.endpoint.v3.ClusterLoadAssignment",
  nameTables: "istio.networking.nds.v1.NameTable",
  Cluster: "envoy.config.cluster.v3.Cluster",
  Listener: "envoy.config.listener.v3.Listener",
  RouteConfiguration: "envoy.config.route.v3.RouteConfiguration",
  ClusterLoadAssignment: "envoy.config.endpoint.v3.ClusterLoadAssignment",
};

let loaded: Registry | undefined;

/** All of Envoy's messages and ours; read once, when first needed. */
export function registry(): Registry {
  loaded ??= createRegistry(
    createFileRegistry(
      fromBinary(FileDescriptorSetSchema, readFileSync(join(import.meta.dirname, "../../src/gen/all.binpb"))),
    ),
    ...[AnySchema, BoolValueSchema, BytesValueSchema, DoubleValueSchema, DurationSchema, EmptySchema, FloatValueSchema],
    ...[Int32ValueSchema, Int64ValueSchema, ListValueSchema, StringValueSchema, StructSchema, TimestampSchema],
    ...[UInt32ValueSchema, UInt64ValueSchema, ValueSchema],
  );
  return loaded;
}

export function messageType(name: string): DescMessage {
  const type = registry().getMessage(name);
  if (type === undefined) throw new Error(`no descriptor of "${name}"`);
  return type;
}

/** Some lists hold resources as `Any`, with their type beside the fields. */
export function withoutType(json: unknown): unknown {
  if (json === null || typeof json !== "object") return json;
  return Object.fromEntries(Object.entries(json).filter(([key]) => key !== "@type"));
}

export function parseResource(type: DescMessage, json: unknown): Message {
  return fromJson(type, json as JsonValue, { registry: registry() });
}

export function formatResource(type: DescMessage, message: Message): JsonValue {
  return toJson(type, message, { registry: registry() });
}

/** Once through bytes and back to JSON, so that two spellings of one message become equal. */
export function throughBytes(type: DescMessage, message: Message): JsonValue {
  return formatResource(type, fromBinary(type, toBinary(type, message)));
}
