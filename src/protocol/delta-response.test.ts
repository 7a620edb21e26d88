import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { DeltaDiscoveryResponseSchema } from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { formatDeltaResponse, parseDeltaResponse, resourceFrame } from "./delta-response.ts";

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
