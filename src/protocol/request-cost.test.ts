/** What a stream asked for before must not make its next request more expensive: n requests cost about n times as much as one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type DeltaRequest, EMPTY_REQUEST } from "./messages/delta-request.ts";
import { ENDPOINT_TYPE } from "./messages/type-urls.ts";
import type { Resource } from "./resource.ts";
import { newSession, nextResponse, receive, retargetTypes, sent } from "./session.ts";

const NONE = new Map([[ENDPOINT_TYPE, [new Map<string, Resource>()]]]);

/** CPU time of so many requests, in milliseconds. */
function cost(
  count: number,
  requestAt: (i: number) => Partial<DeltaRequest>,
  { isAnswering }: { isAnswering: boolean },
) {
  let session = newSession<Resource>();
  const before = process.cpuUsage();
  for (let i = 0; i < count; i++) {
    session = receive(session, { ...EMPTY_REQUEST, typeUrl: ENDPOINT_TYPE, ...requestAt(i) }, i).session;
    session = retargetTypes(session, NONE);
    const next = nextResponse(session, i);
    if (next.kind !== "send") continue;
    session = sent(session, next, { nonce: `${i}`, sentAt: i });
    if (isAnswering) session = receive(session, { ...EMPTY_REQUEST, typeUrl: next.typeUrl, nonce: `${i}` }, i).session;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

const many = Array.from({ length: 20_000 }, (_, i) => `x${i}`);
const SHAPES: Readonly<Record<string, (i: number) => Partial<DeltaRequest>>> = {
  "asks for one more name each time": (i) => ({ subscribe: [`name-${i}`] }),
  "asks for a name again and again, beside many": (i) => ({ subscribe: i === 0 ? many : ["x1"] }),
  "asks for a name and gives it up, beside many": (i) =>
    i === 0 ? { subscribe: many } : i % 2 === 0 ? { subscribe: ["x1"] } : { unsubscribe: ["x1"] },
  "asks for names in turn and gives up others": (i) =>
    i === 0 ? { subscribe: many } : { subscribe: [`name-${i}`], unsubscribe: [`x${i}`] },
};

for (const [shape, requestAt] of Object.entries(SHAPES)) {
  for (const isAnswering of [true, false]) {
    test(`a stream that ${shape} costs in proportion, ${isAnswering ? "answering" : "answering nothing"}`, () => {
      cost(2_000, requestAt, { isAnswering });
      const [once, fourTimes] = [cost(5_000, requestAt, { isAnswering }), cost(20_000, requestAt, { isAnswering })];
      // Copies of all names for each request take seconds, and 16 times as long.
      assert.ok(fourTimes < 8 * once + 200, `${once} ms, then ${fourTimes} ms`);
    });
  }
}
