import assert from "node:assert/strict";
import { test } from "node:test";
import { MessageWriter } from "#lib/wire/write.ts";
import { EMPTY_STATE_REQUEST, formatStateRequest, parseStateRequest } from "../state-request.ts";
import { EMPTY_REQUEST, formatDeltaRequest, parseDeltaRequest } from "./delta-request.ts";
import { RequestLimitError } from "./request-limits.ts";

const delta = (fields: Partial<typeof EMPTY_REQUEST>) => () =>
  parseDeltaRequest(formatDeltaRequest({ ...EMPTY_REQUEST, ...fields }));
const state = (fields: Partial<typeof EMPTY_STATE_REQUEST>) => () =>
  parseStateRequest(formatStateRequest({ ...EMPTY_STATE_REQUEST, ...fields }));

test("a name, version, nonce or type URL above 4,096 bytes is refused", () => {
  const [fits, long] = ["x".repeat(4_096), "x".repeat(4_097)];
  assert.equal(delta({ nonce: fits })().nonce, fits);
  const parts = [
    delta({ typeUrl: long }),
    delta({ nonce: long }),
    delta({ subscribe: [long] }),
    delta({ unsubscribe: [long] }),
    delta({ initialVersions: new Map([[long, "1"]]) }),
    delta({ initialVersions: new Map([["a", long]]) }),
    state({ version: long }),
    state({ nonce: long }),
    state({ typeUrl: long }),
    state({ names: [long] }),
  ];
  for (const parse of parts) assert.throws(parse, RequestLimitError);
});

test("of a rejection's text the first 64 KiB are read", () => {
  const error = { code: 13, message: "x".repeat(300_000) };
  for (const parse of [delta({ error }), state({ error })]) {
    assert.deepEqual(parse().error, { code: 13, message: "x".repeat(65_536) });
  }
});

test("a request of more than 200,000 fields is refused, whatever they are", () => {
  const shapes = { names: [0x1a, 0], "initial versions": [0x2a, 0], nodes: [0x0a, 0], unknown: [0x78, 0] };
  for (const [shape, bytes] of Object.entries(shapes)) {
    for (const parse of [parseDeltaRequest, parseStateRequest]) {
      assert.throws(() => parse(Buffer.alloc(400_002, Buffer.from(bytes))), RequestLimitError, shape);
    }
  }
  const error = Buffer.alloc(400_002, Buffer.from([0x12, 0]));
  assert.throws(() => parseDeltaRequest(new MessageWriter().bytes(7, error).finish()), RequestLimitError);
  const entry = new MessageWriter().bytes(5, Buffer.alloc(400_000, Buffer.from([0x0a, 0]))).finish();
  assert.throws(() => parseDeltaRequest(entry), /more than 100 fields/);
});

test("nesting without end is refused before the stack is used up", () => {
  for (const parse of [parseDeltaRequest, parseStateRequest]) {
    assert.throws(() => parse(Buffer.alloc(4_000_000, 0x7b)), /recursion depth/);
  }
});
