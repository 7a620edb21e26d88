import assert from "node:assert/strict";
import { test } from "node:test";
import { type DeltaRequest, EMPTY_REQUEST } from "./messages/delta-request.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, ROUTE_TYPE } from "./messages/type-urls.ts";
import type { Resource } from "./resource.ts";
import { afterSending, emit, givenUp, onRequest, retarget, type Subscription, subscribe } from "./subscription.ts";

const layer = (...resources: string[]) =>
  new Map(
    resources.map((text): [string, Resource] => {
      const [name = "", version = "1"] = text.split("@");
      return [name, { name, version, value: new Uint8Array(), awaits: undefined }];
    }),
  );
const ask = (typeUrl: string, fields: Partial<DeltaRequest> = {}): DeltaRequest => ({
  ...EMPTY_REQUEST,
  typeUrl,
  ...fields,
});
const first = (typeUrl: string, fields: Partial<DeltaRequest>, ...resources: string[]) =>
  retarget(subscribe<Resource>(ask(typeUrl, fields)), [layer(...resources)]);

let nonces = 0;
/** Sends what there is to send and acknowledges it; gives what was sent. */
function flush(state: Subscription<Resource>, removals = true): { said: string; state: Subscription<Resource> } {
  const draft = emit(state, { removals });
  if (draft === undefined) return { said: "nothing", state };
  const nonce = `n${nonces++}`;
  const said = [
    ...draft.resources.map((r) => `${r.name}@${r.version}`),
    ...draft.removed.map((name) => `-${name}`),
  ].join(" ");
  return { said, state: onRequest(afterSending(draft, nonce), ask("", { nonce })).subscription };
}
const said = (state: Subscription<Resource>) => flush(state).said;
/** Sends, and lets the proxy reject it. */
function reject(state: Subscription<Resource>, message: string) {
  const draft = emit(state, { removals: true });
  assert.ok(draft);
  return onRequest(afterSending(draft, "bad"), ask("", { nonce: "bad", error: { code: 13, message } }));
}

test("a first request without names means everything, for clusters", () => {
  assert.equal(said(first(CLUSTER_TYPE, {}, "a", "b")), "a@1 b@1");
});

test("a first request without names means nothing, for endpoints", () => {
  assert.equal(said(first(ENDPOINT_TYPE, {}, "a", "b")), "nothing");
});

test("a first request with names means these names only, for clusters too", () => {
  assert.equal(said(first(CLUSTER_TYPE, { subscribe: ["b", "c"] }, "a", "b")), "b@1 -c");
});

test("an asterisk means everything, besides names", () => {
  assert.equal(said(first(CLUSTER_TYPE, { subscribe: ["*", "x"] }, "a")), "a@1 -x");
});

test("a first request is answered even when there is nothing to say", () => {
  assert.equal(said(first(CLUSTER_TYPE, {})), "");
});

test("unsubscribing from the asterisk leaves the names", () => {
  const { state } = flush(first(CLUSTER_TYPE, { subscribe: ["*", "a"] }, "a", "b"));
  const { subscription } = onRequest(state, ask(CLUSTER_TYPE, { unsubscribe: ["*"] }));
  assert.equal(said(retarget(subscription, [layer("a@2", "b@2")])), "a@2");
});

test("subscribing to the asterisk later brings everything", () => {
  const { state } = flush(first(CLUSTER_TYPE, { subscribe: ["a"] }, "a", "b"));
  assert.equal(said(onRequest(state, ask(CLUSTER_TYPE, { subscribe: ["*"] })).subscription), "a@1 b@1");
});

test("a name given up under the asterisk is told again", () => {
  const { state } = flush(first(CLUSTER_TYPE, { subscribe: ["*", "a"] }, "a", "b"));
  assert.equal(said(onRequest(state, ask(CLUSTER_TYPE, { unsubscribe: ["a"] })).subscription), "a@1");
});

test("versions kept from an earlier stream are not sent again", () => {
  const initialVersions = new Map([
    ["a", "1"],
    ["b", "1"],
    ["gone", "1"],
  ]);
  assert.equal(said(first(CLUSTER_TYPE, { initialVersions }, "a@1", "b@2", "c@1")), "b@2 c@1 -gone");
  assert.equal(said(first(ROUTE_TYPE, { subscribe: ["a", "b"], initialVersions }, "a@1", "b@2")), "b@2");
});

test("endpoints are sent on a new stream whatever the proxy kept", () => {
  const initialVersions = new Map([["a", "1"]]);
  assert.equal(said(first(ENDPOINT_TYPE, { subscribe: ["a"], initialVersions }, "a@1")), "a@1");
});

test("an explicit subscribe is always answered", () => {
  const { state } = flush(first(ENDPOINT_TYPE, { subscribe: ["a"] }, "a"));
  assert.equal(said(state), "nothing");
  assert.equal(said(onRequest(state, ask(ENDPOINT_TYPE, { subscribe: ["a"] })).subscription), "a@1");
});

test("an unknown name is answered as removed and sent once it exists", () => {
  const { said: answer, state } = flush(first(ENDPOINT_TYPE, { subscribe: ["x"] }, "a"));
  assert.equal(answer, "-x");
  assert.equal(said(retarget(state, [layer("a", "x")])), "x@1");
});

test("only what changed is sent", () => {
  const { state } = flush(first(CLUSTER_TYPE, {}, "a", "b"));
  assert.equal(said(retarget(state, [layer("a@1", "b@2")])), "b@2");
  assert.equal(said(retarget(state, [layer("a@1", "b@1")])), "nothing");
});

test("what a proxy did not ask for is not sent", () => {
  const { state } = flush(first(ENDPOINT_TYPE, { subscribe: ["a"] }, "a", "b"));
  assert.equal(said(retarget(state, [layer("a@2", "b@2", "c@2")])), "a@2");
});

test("nothing is sent before the last response was answered; then the newest", () => {
  const draft = emit(first(CLUSTER_TYPE, {}, "a"), { removals: true });
  assert.ok(draft);
  const waiting = retarget(retarget(afterSending(draft, "n"), [layer("a@2")]), [layer("a@3")]);
  assert.equal(said(waiting), "nothing");
  assert.equal(said(onRequest(waiting, ask(CLUSTER_TYPE, { nonce: "n" })).subscription), "a@3");
});

test("an answer to another response is stale, but what it subscribes to counts", () => {
  const draft = emit(first(ENDPOINT_TYPE, { subscribe: ["a"] }, "a", "b"), { removals: true });
  assert.ok(draft);
  const { subscription, verdict } = onRequest(
    afterSending(draft, "n2"),
    ask(ENDPOINT_TYPE, { nonce: "n1", subscribe: ["b"] }),
  );
  assert.deepEqual([verdict.kind, subscription.pending?.nonce, [...subscription.due]], ["stale", "n2", ["b"]]);
});

test("a removal waits until removals are allowed, unless the resource comes back", () => {
  const { state } = flush(first(CLUSTER_TYPE, {}, "a", "b"));
  const late = flush(retarget(state, [layer("b@2")]), false);
  assert.equal(late.said, "b@2");
  assert.equal(flush(late.state).said, "-a");
  assert.equal(flush(retarget(late.state, [layer("a@1", "b@2")])).said, "a@1");
});

test("a removal is not told for what is to be kept", () => {
  const { state } = flush(first(CLUSTER_TYPE, {}, "a", "b"));
  const draft = emit(retarget(state, [layer()]), { removals: true, keep: new Set(["a"]) });
  assert.deepEqual([draft?.removed, [...(draft?.after.leftover ?? [])]], [["b"], ["a"]]);
});

test("what changed and then went before it could be sent is a removal", () => {
  const { state } = flush(first(CLUSTER_TYPE, {}, "a", "b"));
  const gone = retarget(retarget(state, [layer("a@2", "b")]), [layer("b")]);
  assert.equal(flush(gone, false).said, "nothing");
  assert.equal(flush(gone, true).said, "-a");
});

test("a name that was asked for and then went is answered at once: a cluster may be warming until it is", () => {
  const asked = retarget(first(ENDPOINT_TYPE, { subscribe: ["a"] }, "a"), [layer()]);
  assert.equal(flush(asked, false).said, "-a");
});

test("after a rejection the culprit is held and the others are sent again", () => {
  const { state } = flush(first(CLUSTER_TYPE, {}, "a", "b", "c"));
  const { subscription, verdict } = reject(retarget(state, [layer("a@2", "b@2", "c")]), "cluster(s) b: bad");
  assert.deepEqual(
    verdict.kind === "rejected" && verdict.held.map(({ rejected, good }) => [rejected.version, good?.version]),
    [["2", "1"]],
  );
  assert.equal(said(subscription), "a@2");
});

test("the rejected version is not sent again, a newer one is", () => {
  const { state } = flush(first(CLUSTER_TYPE, {}, "a", "b"));
  const held = flush(reject(retarget(state, [layer("a@2", "b@2")]), "b: bad").subscription).state;
  assert.equal(said(retarget(held, [layer("a@3", "b@2")])), "a@3");
  const healed = flush(retarget(held, [layer("a@2", "b@3")]));
  assert.deepEqual([healed.said, healed.state.held.size], ["b@3", 0]);
});

test("who asks for a held resource gets its last good version, or that there is none", () => {
  const { state } = flush(first(ENDPOINT_TYPE, { subscribe: ["a"] }, "a", "b"));
  const held = reject(retarget(state, [layer("a@2", "b")]), "a: bad").subscription;
  assert.equal(said(onRequest(held, ask(ENDPOINT_TYPE, { subscribe: ["a"] })).subscription), "a@1");
  const never = reject(onRequest(state, ask(ENDPOINT_TYPE, { subscribe: ["b"] })).subscription, "b: bad").subscription;
  assert.equal(said(onRequest(never, ask(ENDPOINT_TYPE, { subscribe: ["b"] })).subscription), "-b");
});

test("the last good version outlives a second rejection", () => {
  const { state } = flush(first(CLUSTER_TYPE, {}, "a", "b"));
  const once = flush(reject(retarget(state, [layer("a@2", "b@2")]), "a: bad").subscription).state;
  const { verdict } = reject(retarget(once, [layer("a@3", "b@2")]), "a: bad");
  assert.equal(verdict.kind === "rejected" && verdict.held[0]?.good?.version, "1");
});

test("the last good version outlives a second rejection, though others are acknowledged before it comes", () => {
  const { state } = flush(first(CLUSTER_TYPE, {}, "c@good"));
  const once = flush(reject(retarget(state, [layer("c@bad1", "a")]), "c: bad").subscription).state;
  const goodOf = ({ verdict }: ReturnType<typeof reject>) =>
    verdict.kind === "rejected" && verdict.held[0]?.good?.version;

  const apart = reject(retarget(once, [layer("b", "c@bad2", "a")]), "something is wrong").subscription;
  assert.equal(goodOf(reject(flush(apart).state, "something is wrong")), "good");

  const draft = emit(retarget(once, [layer("c@bad2", "a")]), { removals: true }) ?? assert.fail();
  const late = flush(retarget(givenUp(afterSending(draft, "late")), [layer("c@bad2", "a", "b")]));
  assert.equal(late.said, "b@1");
  assert.equal(
    goodOf(onRequest(late.state, ask(CLUSTER_TYPE, { nonce: "late", error: { code: 13, message: "c: bad" } }))),
    "good",
  );
});

test("a rejected resource with a fallback is replaced by that, at once", () => {
  const plain: Resource = { name: "a", version: "1-plain", value: new Uint8Array(), awaits: undefined };
  const patched: Resource = { ...plain, version: "1", fallback: () => plain };
  const state = retarget(subscribe<Resource>(ask(CLUSTER_TYPE)), [new Map([["a", patched]])]);
  const { subscription } = reject(state, "a: bad");
  const taken = flush(subscription);
  assert.equal(taken.said, "a@1-plain");
  assert.equal(said(taken.state), "nothing");
  const next: Resource = { ...plain, version: "2", fallback: () => ({ ...plain, version: "2-plain" }) };
  assert.equal(said(retarget(taken.state, [new Map([["a", next]])])), "a@2");
});

test("a fallback that is rejected too is not sent again", () => {
  const plain: Resource = { name: "a", version: "1-plain", value: new Uint8Array(), awaits: undefined };
  const patched: Resource = { ...plain, version: "1", fallback: () => plain };
  const state = retarget(subscribe<Resource>(ask(CLUSTER_TYPE)), [new Map([["a", patched]])]);
  const { subscription } = reject(reject(state, "a: bad").subscription, "a: bad");
  assert.equal(said(subscription), "nothing");
});

test("removals inside a rejected response are told again", () => {
  const { state } = flush(first(CLUSTER_TYPE, {}, "a", "b"));
  assert.equal(said(reject(retarget(state, [layer("b@2")]), "b: bad").subscription), "-a");
});

test("a rejection that names nobody is narrowed down by halves", () => {
  const { state } = flush(first(ROUTE_TYPE, { subscribe: ["a", "b", "c", "d"] }, "a", "b", "c", "d"));
  const left = reject(retarget(state, [layer("a@2", "b@2", "c@2", "d@2")]), "something is wrong").subscription;
  assert.equal(said(left), "a@2 b@2");
  const again = reject(flush(left).state, "something is wrong").subscription;
  assert.equal(said(again), "c@2");
  const { subscription, verdict } = reject(flush(again).state, "something is wrong");
  assert.deepEqual(verdict.kind === "rejected" && verdict.held.map((h) => h.rejected.name), ["d"]);
  assert.equal(said(subscription), "nothing");
});

test("what is gone meanwhile is not tried apart", () => {
  const { state } = flush(first(CLUSTER_TYPE, {}, "a", "b", "c"));
  const apart = reject(retarget(state, [layer("a@2", "b@2", "c@2")]), "something is wrong").subscription;
  assert.equal(flush(retarget(apart, [layer("c@2")]), false).said, "c@2");
});

test("a rejected removal is not repeated", () => {
  const { state } = flush(first(CLUSTER_TYPE, {}, "a"));
  assert.equal(said(reject(retarget(state, [layer()]), "no").subscription), "nothing");
});

test("onRequest() takes the late answer to a response that was given up", () => {
  const first = retarget(subscribe(ask(CLUSTER_TYPE)), [layer("a@1")]);
  const draft = emit(first, { removals: true }) ?? assert.fail();
  const second = retarget(givenUp(afterSending(draft, "n1")), [layer("a@1", "b@1")]);
  const next = emit(second, { removals: true }) ?? assert.fail();
  const waiting = afterSending(next, "n2");
  const taken = onRequest(waiting, ask(CLUSTER_TYPE, { nonce: "n1" }));
  assert.equal(taken.verdict.kind, "acknowledged");
  assert.equal(taken.subscription.pending?.nonce, "n2");
  const error = { code: 13, message: "a is wrong" };
  const { verdict, subscription } = onRequest(waiting, ask(CLUSTER_TYPE, { nonce: "n1", error }));
  assert.deepEqual(verdict.kind === "rejected" && verdict.held.map(({ rejected }) => rejected.name), ["a"]);
  assert.equal(subscription.pending?.nonce, "n2");
});
