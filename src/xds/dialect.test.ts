import assert from "node:assert/strict";
import { test } from "node:test";
import { newSession, receive } from "#protocol/session.ts";
import { SharedSteps } from "#protocol/shared-steps.ts";
import { EMPTY_STATE_REQUEST, formatStateRequest } from "#protocol/state-request.ts";
import { ENDPOINT_TYPE } from "#protocol/type-urls.ts";
import { DIALECTS, requestIn } from "./dialect.ts";

const STATE = DIALECTS.find(({ method }) => method === "StreamAggregatedResources");

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
