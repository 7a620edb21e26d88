import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary } from "@bufbuild/protobuf";
import { ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { VirtualHostSchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { TypedStructSchema } from "#gen/udpa/type/v1/typed_struct_pb.ts";
import { bytesOf, duration, encode, pack } from "./encode.ts";

test("maps and structs are written in sorted order, at any depth", () => {
  const a = bytesOf(ClusterSchema, {
    metadata: { filterMetadata: { b: { y: [{ d: 1, c: 2 }], x: null }, a: {} } },
    typedExtensionProtocolOptions: { two: pack(ClusterSchema, {}), one: pack(ClusterSchema, {}) },
  });
  const b = bytesOf(ClusterSchema, {
    typedExtensionProtocolOptions: { one: pack(ClusterSchema, {}), two: pack(ClusterSchema, {}) },
    metadata: { filterMetadata: { a: {}, b: { x: null, y: [{ c: 2, d: 1 }] } } },
  });
  assert.deepEqual(a, b);
  assert.deepEqual(Object.keys(fromBinary(ClusterSchema, a).metadata?.filterMetadata ?? {}), ["a", "b"]);
});

test("maps inside lists and oneofs are sorted too", () => {
  const host = (value: { b: string; a: string } | { a: string; b: string }) =>
    bytesOf(VirtualHostSchema, {
      routes: [
        {
          metadata: { filterMetadata: { istio: value } },
          action: { case: "route", value: { metadataMatch: { filterMetadata: { "envoy.lb": value } } } },
        },
      ],
    });
  assert.deepEqual(host({ b: "1", a: "2" }), host({ a: "2", b: "1" }));
});

test("a struct that is a field of its own is sorted", () => {
  const bytes = (value: { b: number; a: number }) => encode(TypedStructSchema, create(TypedStructSchema, { value }));
  assert.deepEqual(bytes({ b: 1, a: 2 }), bytes({ a: 2, b: 1 }));
});

test("duration() keeps fractions of a millisecond", () => {
  assert.deepEqual([duration(1500).seconds, duration(1500).nanos], [1n, 500_000_000]);
  assert.deepEqual([duration(0.0001).seconds, duration(0.0001).nanos], [0n, 100]);
  assert.deepEqual([duration(-1500).seconds, duration(-1500).nanos], [-1n, -500_000_000]);
});
