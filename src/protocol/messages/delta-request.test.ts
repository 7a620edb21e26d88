import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { DeltaDiscoveryRequestSchema } from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { EMPTY_REQUEST, formatDeltaRequest, parseDeltaRequest } from "./delta-request.ts";

const REQUEST = {
  ...EMPTY_REQUEST,
  typeUrl: "type.googleapis.com/a.B",
  subscribe: ["outbound|80||a", "*"],
  unsubscribe: ["ä"],
  initialVersions: new Map([["x", "1"]]),
  nonce: "n1",
  error: { code: 13, message: "no" },
};

test("parseDeltaRequest() reads what the generated code writes", () => {
  const node = create(NodeSchema, { id: "sidecar~1.1.1.1~a.b~c" });
  const bytes = toBinary(
    DeltaDiscoveryRequestSchema,
    create(DeltaDiscoveryRequestSchema, {
      node,
      typeUrl: REQUEST.typeUrl,
      resourceNamesSubscribe: REQUEST.subscribe,
      resourceNamesUnsubscribe: REQUEST.unsubscribe,
      initialResourceVersions: { x: "1" },
      responseNonce: "n1",
      errorDetail: { code: 13, message: "no", details: [{ typeUrl: "t", value: new Uint8Array(3) }] },
    }),
  );
  const request = parseDeltaRequest(bytes);
  assert.deepEqual({ ...request, node: undefined }, REQUEST);
  assert.equal(fromBinary(NodeSchema, request.node ?? new Uint8Array()).id, node.id);
});

test("formatDeltaRequest() is read by the generated code", () => {
  const message = fromBinary(DeltaDiscoveryRequestSchema, formatDeltaRequest(REQUEST));
  assert.deepEqual(message.resourceNamesSubscribe, REQUEST.subscribe);
  assert.deepEqual(message.initialResourceVersions, { x: "1" });
  assert.equal(message.errorDetail?.message, "no");
  assert.equal(message.responseNonce, "n1");
});

test("a request comes back from its bytes as it was", () => {
  const name = fc.string({ unit: "grapheme", minLength: 1 });
  const plain = { noNullPrototype: true } as const;
  const request = fc.record(
    {
      node: fc.option(fc.uint8Array(), { nil: undefined }),
      typeUrl: name,
      subscribe: fc.array(name),
      unsubscribe: fc.array(name),
      initialVersions: fc.array(fc.tuple(name, name)).map((entries) => new Map(entries)),
      keepsUnknown: fc.constant(false),
      nonce: fc.string(),
      error: fc.option(fc.record({ code: fc.nat(), message: fc.string() }, plain), { nil: undefined }),
    },
    plain,
  );
  fc.assert(fc.property(request, (value) => assert.deepEqual(parseDeltaRequest(formatDeltaRequest(value)), value)));
});

test("parseDeltaRequest() skips fields it does not know, of any wire type", () => {
  const unknown = [0xa0, 0x06, 0x01, 0xa2, 0x06, 0x01, 0x00, 0xa5, 0x06, 0, 0, 0, 0]; // field 100: varint, bytes, fixed32
  assert.deepEqual(parseDeltaRequest(new Uint8Array([...unknown, ...formatDeltaRequest(REQUEST)])), REQUEST);
});

test("parseDeltaRequest() throws on bytes that are cut short or no message", () => {
  for (const bytes of [
    [0x12, 0x05, 0x61],
    [0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    [0x0b, 0x0b],
  ]) {
    assert.throws(() => parseDeltaRequest(new Uint8Array(bytes)));
  }
});
