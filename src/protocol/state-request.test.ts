import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "./messages/type-urls.ts";
import type { Resource } from "./resource.ts";
import {
  EMPTY_STATE_REQUEST,
  formatStateRequest,
  parseStateRequest,
  type StateRequest,
  toDelta,
} from "./state-request.ts";
import { afterSending, emit, onRequest, retarget, type Subscription, subscribe } from "./subscription.ts";

const ask = (fields: Partial<StateRequest>): StateRequest => ({
  ...EMPTY_STATE_REQUEST,
  typeUrl: CLUSTER_TYPE,
  ...fields,
});
/** The state after a first request and its answer under nonce `n1`. */
function answered(typeUrl: string, names: readonly string[]): Subscription<Resource> {
  const state = retarget(subscribe<Resource>(toDelta(ask({ typeUrl, names }), undefined), "complete"), []);
  const draft = emit(state, { removals: true });
  assert.ok(draft);
  return afterSending(draft, "n1");
}
const acknowledged = (state: Subscription<Resource>) =>
  onRequest(state, toDelta(ask({ nonce: "n1", names: [...state.names] }), state)).subscription;
const changes = ({ subscribe: more, unsubscribe: less }: ReturnType<typeof toDelta>) => [more, less];

test("formatStateRequest() and parseStateRequest() are a round trip", () => {
  const text = fc.string();
  const plain = { noNullPrototype: true };
  const request = fc.record(
    {
      version: text,
      node: fc.option(fc.uint8Array(), { nil: undefined }),
      names: fc.array(fc.string({ minLength: 1 })),
      typeUrl: text,
      nonce: text,
      error: fc.option(fc.record({ code: fc.nat(100), message: text }, plain), { nil: undefined }),
    },
    plain,
  );
  fc.assert(
    fc.property(request, (value) => {
      const parsed = parseStateRequest(formatStateRequest(value));
      assert.deepEqual({ ...parsed, node: parsed.node && Uint8Array.from(parsed.node) }, value);
    }),
  );
});

test("toDelta() tells from a version that the proxy kept something from an earlier stream", () => {
  assert.equal(toDelta(ask({ version: "7" }), undefined).keepsUnknown, true);
  assert.equal(toDelta(ask({}), undefined).keepsUnknown, false);
});

test("toDelta() takes the names that came and went out of the whole list", () => {
  const state = acknowledged(answered(ENDPOINT_TYPE, ["a", "b"]));
  assert.deepEqual(changes(toDelta(ask({ typeUrl: ENDPOINT_TYPE, names: ["b", "c"], nonce: "n1" }), state)), [
    ["c"],
    ["a"],
  ]);
});

test("toDelta() goes on with everything while no names are given", () => {
  const state = acknowledged(answered(CLUSTER_TYPE, []));
  assert.deepEqual(changes(toDelta(ask({ nonce: "n1" }), state)), [[], []]);
  assert.deepEqual(changes(toDelta(ask({ nonce: "n1", names: ["a"] }), state)), [["a"], ["*"]]);
  assert.deepEqual(changes(toDelta(ask({ nonce: "n1", names: ["*", "a"] }), state)), [["a"], []]);
});

test("toDelta() reads no names after some as none", () => {
  const state = acknowledged(answered(CLUSTER_TYPE, ["a"]));
  assert.deepEqual(changes(toDelta(ask({ nonce: "n1" }), state)), [[], ["a"]]);
});

test("toDelta() asks for everything again where a request knows of no response", () => {
  const state = acknowledged(answered(CLUSTER_TYPE, []));
  assert.deepEqual(changes(toDelta(ask({}), state)), [["*"], []]);
});

test("a request with a nonce that was answered is no answer, and one with an older nonce is stale", () => {
  const pending = answered(CLUSTER_TYPE, []);
  assert.equal(onRequest(pending, toDelta(ask({ nonce: "n1" }), pending)).verdict.kind, "acknowledged");
  const state = acknowledged(pending);
  assert.equal(onRequest(state, toDelta(ask({ nonce: "n1", names: ["x"] }), state)).verdict.kind, "none");
  assert.equal(onRequest(state, toDelta(ask({ nonce: "n0" }), state)).verdict.kind, "stale");
});
