import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY_REQUEST, formatDeltaRequest } from "#protocol/messages/delta-request.ts";
import { ENDPOINT_TYPE } from "#protocol/messages/type-urls.ts";
import { newSession, receive } from "#protocol/session.ts";
import { SharedSteps } from "#protocol/shared-steps.ts";
import { EMPTY_STATE_REQUEST, formatStateRequest } from "#protocol/state-request.ts";
import { DIALECTS, requestIn } from "./dialect.ts";

const STATE = DIALECTS.find(({ method }) => method === "StreamAggregatedResources");
const DELTA = DIALECTS.find(({ method }) => method === "DeltaAggregatedResources");

const REFUSED = { message: /it is no (Delta)?DiscoveryRequest/ };

test("the same words of two proxies are read beside what each of them asked for before", () => {
  assert.ok(STATE);
  const steps = new SharedSteps();
  const asking = (names: readonly string[]) => {
    const bytes = formatStateRequest({ ...EMPTY_STATE_REQUEST, typeUrl: ENDPOINT_TYPE, names });
    const session = newSession("state", steps);
    return receive(session, requestIn(STATE, bytes, session), 0).session;
  };
  const answer = formatStateRequest({ ...EMPTY_STATE_REQUEST, typeUrl: ENDPOINT_TYPE, names: ["a", "b"], nonce: "1" });
  const [same, other] = [asking(["a", "b"]), asking(["a", "c"])];
  const changes = [same, other, same].map((session) => {
    const { subscribe, unsubscribe, nonce } = requestIn(STATE, Buffer.from(answer), session);
    return { subscribe, unsubscribe, nonce };
  });
  const none = { subscribe: [], unsubscribe: [], nonce: "1" };
  assert.deepEqual(changes, [none, { subscribe: ["b"], unsubscribe: ["c"], nonce: "1" }, none]);
});

test("what proxies ask for in the same words is read once, whichever node each of them repeats before", () => {
  assert.ok(DELTA);
  const session = newSession("delta", new SharedSteps());
  const asked = (node: string, names: readonly string[]) =>
    requestIn(
      DELTA,
      formatDeltaRequest({ ...EMPTY_REQUEST, node: Buffer.from(node), typeUrl: ENDPOINT_TYPE, subscribe: names }),
      session,
    );
  const first = asked("a", ["x", "y"]);
  assert.deepEqual(first.subscribe, ["x", "y"]);
  // What others ask in between.
  for (const name of ["p", "q", "r"]) assert.deepEqual(asked("a", [name]).subscribe, [name]);
  assert.equal(asked("another", ["x", "y"]), first);
  assert.deepEqual(asked("another", ["x", "z"]).subscribe, ["x", "z"]);
});

test("a request whose node is cut off is refused, also when a request with nothing else was read before", () => {
  assert.ok(STATE && DELTA);
  for (const [dialect, tag] of [
    [DELTA, 0x0a],
    [STATE, 0x12],
  ] as const) {
    const session = newSession(dialect.kind, new SharedSteps());
    const whole = Buffer.from([tag, 1, 0x61]);
    assert.throws(() => requestIn(dialect, whole, session), { message: /without type_url/ });
    for (const cut of [[tag], [tag, 0x80], [tag, 2, 0x61], [tag, 0xff, 0xff, 0xff, 0xff, 0x0f]])
      assert.throws(() => requestIn(dialect, Buffer.from(cut), session), REFUSED, cut.join());
  }
});
