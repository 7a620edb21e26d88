import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { DeltaDiscoveryResponseSchema } from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { deltaResponsePieces, formatDeltaResponse, parseDeltaResponse, resourceFrame } from "./delta-response.ts";

const TYPE = "type.googleapis.com/a.B";
const RESOURCES = [
  { name: "a", version: "1", value: new Uint8Array([1, 2, 3]) },
  { name: "", version: "2", value: new Uint8Array() },
];
const BYTES = formatDeltaResponse({
  typeUrl: TYPE,
  nonce: "n",
  systemVersion: "v7",
  resources: RESOURCES.map((resource) => resourceFrame(TYPE, resource)),
  removed: ["x", "y"],
  controlPlane: "me",
});

test("formatDeltaResponse() is read by the generated code", () => {
  const message = fromBinary(DeltaDiscoveryResponseSchema, BYTES);
  assert.deepEqual(
    message.resources.map(({ name, version, resource }) => ({
      name,
      version,
      value: new Uint8Array(resource?.value ?? []),
    })),
    RESOURCES,
  );
  assert.deepEqual(
    message.resources.map((r) => r.resource?.typeUrl),
    [TYPE, TYPE],
  );
  assert.deepEqual(message.removedResources, ["x", "y"]);
  assert.deepEqual([message.typeUrl, message.nonce, message.systemVersionInfo], [TYPE, "n", "v7"]);
  assert.equal(message.controlPlane?.identifier, "me");
});

test("parseDeltaResponse() reads a response back", () => {
  const { typeUrl, nonce, systemVersion, resources, removed } = parseDeltaResponse(BYTES);
  assert.deepEqual(
    { typeUrl, nonce, systemVersion, removed },
    { typeUrl: TYPE, nonce: "n", systemVersion: "v7", removed: ["x", "y"] },
  );
  assert.deepEqual(
    resources.map((r) => ({ ...r, value: new Uint8Array(r.value) })),
    RESOURCES,
  );
});

test("parseDeltaResponse() throws on bytes that are cut short", () => {
  assert.throws(() => parseDeltaResponse(BYTES.subarray(0, 20)));
});

test("deltaResponsePieces() are the same bytes, with large resources as they are", () => {
  const frames = [1, 100_000, 2, 3, 200_000].map((size, i) =>
    resourceFrame(TYPE, { name: `${i}`, version: "1", value: new Uint8Array(size).fill(i) }),
  );
  const response = {
    typeUrl: TYPE,
    nonce: "n",
    systemVersion: "v7",
    resources: frames,
    removed: ["x"],
    controlPlane: "",
  };
  const pieces = deltaResponsePieces(response);
  assert.ok(Buffer.concat(pieces).equals(formatDeltaResponse(response)));
  assert.equal(pieces.length, 5);
  assert.deepEqual([pieces[1]?.buffer, pieces[3]?.buffer], [frames[1]?.buffer, frames[4]?.buffer]);
});
