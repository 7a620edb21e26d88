/** Discovery requests, delta and state of the world, as proxies send them. */
import assert from "node:assert/strict";
import { formatDeltaRequest, parseDeltaRequest } from "#protocol/messages/delta-request.ts";
import { formatStateRequest, parseStateRequest, toDelta } from "#protocol/state-request.ts";
import { type FuzzTarget, readOrReject } from "./target.ts";
import { NOT_A_MESSAGE } from "./wire.fuzz.ts";

const TYPES = ["cluster.v3.Cluster", "listener.v3.Listener", "endpoint.v3.ClusterLoadAssignment"];

export const target: FuzzTarget = {
  maxBytes: 4096,
  dictionary: [
    ...TYPES.map((type) => `\x12${String.fromCharCode(32 + type.length)}type.googleapis.com/envoy.config.${type}`),
    "\x0a\x09\x0a\x07sidecar",
    "\x1a\x01a",
    "\x1a\x01*",
    "\x22\x01a",
    "\x2a\x06\x0a\x01a\x12\x01b",
    "\x32\x01n",
    "\x3a\x05\x08\x03\x12\x01e",
  ],
  run(input) {
    const bytes = new Uint8Array(input);
    const delta = readOrReject(() => parseDeltaRequest(bytes), NOT_A_MESSAGE);
    // No resource has an empty name, and a request that is written again leaves such names out.
    const hasEmpty = (names: Iterable<string>) => [...names].includes("");
    if (delta !== undefined && !hasEmpty([...delta.subscribe, ...delta.unsubscribe, ...delta.initialVersions.keys()]))
      assert.deepEqual(parseDeltaRequest(formatDeltaRequest(delta)), delta);
    const state = readOrReject(() => parseStateRequest(bytes), NOT_A_MESSAGE);
    if (state === undefined || hasEmpty(state.names)) return;
    assert.deepEqual(parseStateRequest(formatStateRequest(state)), state);
    toDelta(state, undefined);
  },
};
