import assert from "node:assert/strict";
import { test } from "node:test";
import { type DeltaRequest, EMPTY_REQUEST } from "./messages/delta-request.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
  shortTypeName,
} from "./messages/type-urls.ts";
import type { Resource } from "./resource.ts";
import {
  ANSWER_MS,
  newSession,
  nextResponse,
  READ_MS,
  REMOVE_AFTER_MS,
  receive,
  retargetTypes,
  type Session,
  sent,
  WARM_MS,
} from "./session.ts";

/** `name@version`, and `>x` for the endpoints a cluster awaits or the cluster a listener names. */
const layer = (...texts: string[]) =>
  new Map(
    texts.map((text): [string, Resource] => {
      const [, name = "", version = "1", other] = /^([^@>]*)(?:@([^>]*))?(?:>(.*))?$/.exec(text) ?? [];
      return [name, { name, version, value: Buffer.from(other ?? ""), awaits: other }];
    }),
  );
const CLUSTERS = ["a>a", "b>b"];

/** One stream with a proxy that answers when told to. */
class Stream {
  session: Session<Resource> = newSession();
  now = 1_000;
  ask(typeUrl: string, fields: Partial<DeltaRequest> = {}): this {
    this.session = receive(this.session, { ...EMPTY_REQUEST, typeUrl, ...fields }, this.now).session;
    return this;
  }
  set(typeUrl: string, ...resources: string[]): this {
    this.session = retargetTypes(this.session, new Map([[typeUrl, [layer(...resources)]]]));
    return this;
  }
  /** What the next response says, such as `cds a@1 -b`; or `wait`, `idle`. */
  next(): string {
    const next = nextResponse(this.session, this.now);
    if (next.kind !== "send") return next.kind;
    this.session = sent(this.session, next, { nonce: `${next.typeUrl}${this.now}`, sentAt: this.now });
    const { resources, removed } = next.draft;
    return [
      shortTypeName(next.typeUrl),
      ...resources.map((r) => `${r.name}@${r.version}`),
      ...removed.map((n) => `-${n}`),
    ].join(" ");
  }
  answer(typeUrl: string, error?: string): this {
    const nonce = this.session.types.get(typeUrl)?.pending?.nonce ?? "none";
    return this.ask(typeUrl, { nonce, error: error === undefined ? undefined : { code: 13, message: error } });
  }
  /** Sends and acknowledges until nothing is left. */
  settle(): this {
    for (let said = this.next(); said !== "idle"; said = this.next()) {
      this.now += 1_000;
      for (const typeUrl of this.session.types.keys()) this.answer(typeUrl);
      this.now += 1_000;
    }
    return this;
  }
}

/** A proxy that has two clusters with endpoints, a listener and a route. */
const connected = (kept: Partial<DeltaRequest> = {}) =>
  new Stream()
    .ask(CLUSTER_TYPE)
    .ask(ENDPOINT_TYPE, { subscribe: ["a", "b"] })
    .ask(LISTENER_TYPE, kept)
    .ask(ROUTE_TYPE, { subscribe: ["r"] })
    .set(CLUSTER_TYPE, ...CLUSTERS)
    .set(ENDPOINT_TYPE, "a", "b")
    .set(LISTENER_TYPE, "l")
    .set(ROUTE_TYPE, "r>b");

test("types are sent in the order clusters, endpoints, listeners, routes", () => {
  for (const kept of [{ initialVersions: new Map([["l", "0"]]) }, { keepsUnknown: true }]) {
    const stream = connected(kept);
    assert.equal(stream.next(), "cds a@1 b@1");
    assert.equal(stream.next(), "eds a@1 b@1");
    assert.equal(stream.next(), "wait");
    assert.equal(stream.answer(CLUSTER_TYPE).next(), "lds l@1");
    assert.equal(stream.next(), "wait");
    assert.equal(stream.answer(LISTENER_TYPE).next(), "rds r@1");
    assert.equal(stream.answer(ROUTE_TYPE).answer(ENDPOINT_TYPE).next(), "idle");
  }
});

test("a client that has nothing, asks for all at once and never answers is told all, and from then on in order", () => {
  const stream = connected();
  assert.deepEqual([stream.next(), stream.next()], ["cds a@1 b@1", "eds a@1 b@1"]);
  assert.deepEqual(nextResponse(stream.session, stream.now), { kind: "wait", until: stream.now + ANSWER_MS });
  stream.now += ANSWER_MS;
  assert.deepEqual([stream.next(), stream.next(), stream.next()], ["lds l@1", "rds r@1", "wait"]);
  stream.answer(CLUSTER_TYPE).set(CLUSTER_TYPE, "a@2>a", "b>b").answer(LISTENER_TYPE).set(LISTENER_TYPE, "l@2");
  assert.deepEqual([stream.next(), stream.next(), stream.next()], ["cds a@2", "wait", "wait"]);
  stream.answer(ENDPOINT_TYPE);
  assert.deepEqual([stream.next(), stream.next()], ["eds a@1", "wait"]);
  assert.equal(stream.answer(CLUSTER_TYPE).next(), "lds l@2");
});

test("listeners that are asked for when clusters were answered wait for newer clusters", () => {
  const stream = new Stream().ask(CLUSTER_TYPE).set(CLUSTER_TYPE, "a").settle();
  stream.set(CLUSTER_TYPE, "a", "b").set(LISTENER_TYPE, "l");
  assert.equal(stream.next(), "cds b@1");
  assert.equal(stream.ask(LISTENER_TYPE).set(LISTENER_TYPE, "l").next(), "wait");
  assert.equal(stream.answer(CLUSTER_TYPE).next(), "lds l@1");
});

test("a cluster that is sent is followed by its endpoints even if they did not change", () => {
  const stream = connected().settle().set(CLUSTER_TYPE, "a@2>a", "b>b");
  assert.equal(stream.next(), "cds a@2");
  assert.equal(stream.next(), "eds a@1");
});

test("endpoints go at once while listeners are not answered yet", () => {
  const stream = connected().settle().set(LISTENER_TYPE, "l@2");
  assert.equal(stream.next(), "lds l@2");
  assert.equal(stream.set(ENDPOINT_TYPE, "a@2", "b").next(), "eds a@2");
});

test("endpoints do not wait for the answer to clusters, which Envoy gives when it has them; listeners do", () => {
  const stream = connected().settle();
  stream
    .set(CLUSTER_TYPE, ...CLUSTERS, "c>c")
    .set(ENDPOINT_TYPE, "a", "b", "c")
    .set(LISTENER_TYPE, "l@2");
  assert.equal(stream.next(), "cds c@1");
  assert.equal(stream.next(), "wait");
  assert.equal(stream.ask(ENDPOINT_TYPE, { subscribe: ["c"] }).next(), "eds c@1");
  assert.equal(stream.answer(ENDPOINT_TYPE).next(), "wait");
  assert.equal(stream.answer(CLUSTER_TYPE).next(), "lds l@2");
});

test("a cluster that never gets warm holds nothing up for long, and nothing at all from then on", () => {
  const stream = connected().settle();
  const clusters = [...CLUSTERS, "cold"];
  stream.set(CLUSTER_TYPE, ...clusters).set(LISTENER_TYPE, "l@2");
  assert.equal(stream.next(), "cds cold@1");
  assert.deepEqual(nextResponse(stream.session, stream.now), { kind: "wait", until: stream.now + WARM_MS });
  stream.now += WARM_MS;
  assert.equal(stream.next(), "lds l@2");
  stream
    .answer(LISTENER_TYPE)
    .set(CLUSTER_TYPE, ...clusters, "d")
    .set(LISTENER_TYPE, "l@3");
  assert.equal(stream.next(), "cds d@1");
  assert.equal(stream.next(), "lds l@3");
  assert.equal(stream.answer(LISTENER_TYPE).next(), "idle");
});

test("clusters that are still being read are waited for longer: their endpoints were not asked for yet", () => {
  const stream = connected().settle();
  stream
    .set(CLUSTER_TYPE, ...CLUSTERS, "c>c")
    .set(ENDPOINT_TYPE, "a", "b", "c")
    .set(LISTENER_TYPE, "l@2");
  assert.equal(stream.next(), "cds c@1");
  assert.deepEqual(nextResponse(stream.session, stream.now), { kind: "wait", until: stream.now + READ_MS });
  stream.now += READ_MS - WARM_MS - 1;
  assert.equal(stream.ask(ENDPOINT_TYPE, { subscribe: ["c"] }).next(), "eds c@1");
  assert.deepEqual(nextResponse(stream.session, stream.now), { kind: "wait", until: stream.now + WARM_MS });
  stream.now += WARM_MS;
  assert.equal(stream.next(), "lds l@2");
});

test("listeners do not wait for endpoints that keep changing", () => {
  const stream = connected().settle().set(ENDPOINT_TYPE, "a@2", "b").set(LISTENER_TYPE, "l@2");
  assert.equal(stream.next(), "eds a@2");
  assert.equal(stream.set(ENDPOINT_TYPE, "a@3", "b").next(), "lds l@2");
});

test("a cluster is removed after the listeners and routes that stop naming it are acknowledged", () => {
  const stream = connected()
    .settle()
    .set(CLUSTER_TYPE, "a>a")
    .set(ENDPOINT_TYPE, "a")
    .set(LISTENER_TYPE, "l@2")
    .set(ROUTE_TYPE, "r@2>a");
  assert.equal(stream.next(), "lds l@2");
  assert.equal(stream.answer(LISTENER_TYPE).next(), "rds r@2");
  assert.equal(stream.next(), "wait");
  assert.equal(stream.answer(ROUTE_TYPE).next(), "wait");
  stream.now += REMOVE_AFTER_MS;
  assert.equal(stream.next(), "cds -b");
  assert.equal(
    stream
      .answer(CLUSTER_TYPE)
      .ask(ENDPOINT_TYPE, { unsubscribe: ["b"] })
      .next(),
    "idle",
  );
});

test("endpoints of a removed cluster are removed too where the proxy still asks for them", () => {
  const stream = connected().settle().set(CLUSTER_TYPE, "a>a").set(ENDPOINT_TYPE, "a");
  assert.equal(stream.next(), "cds -b");
  assert.equal(stream.answer(CLUSTER_TYPE).next(), "eds -b");
});

test("endpoints are not removed while their cluster exists", () => {
  assert.equal(connected().settle().set(ENDPOINT_TYPE, "a").next(), "idle");
});

test("a cluster stays as long as a route names it that the proxy kept because it rejected a newer one", () => {
  const stream = connected().settle().set(CLUSTER_TYPE, "a>a").set(ROUTE_TYPE, "r@2>a");
  assert.equal(stream.next(), "rds r@2");
  stream.answer(ROUTE_TYPE, "r is bad");
  stream.now += REMOVE_AFTER_MS;
  assert.equal(stream.next(), "idle");
  assert.equal(stream.set(ROUTE_TYPE, "r@3>a").next(), "rds r@3");
  stream.answer(ROUTE_TYPE);
  stream.now += REMOVE_AFTER_MS;
  assert.equal(stream.next(), "cds -b");
});

test("listeners are removed in their turn", () => {
  assert.equal(connected().settle().set(LISTENER_TYPE, "l2").next(), "lds l2@1 -l");
});

test("types outside the order wait for nobody", () => {
  const stream = connected({ keepsUnknown: true }).ask(NAME_TABLE_TYPE).set(NAME_TABLE_TYPE, "names");
  assert.equal(stream.next(), "cds a@1 b@1");
  assert.equal(stream.next(), "eds a@1 b@1");
  assert.equal(stream.next(), "nds names@1");
});

test("new names wait until the proxy knows where they lead", () => {
  const stream = new Stream().ask(CLUSTER_TYPE).ask(LISTENER_TYPE).ask(NAME_TABLE_TYPE);
  stream.set(CLUSTER_TYPE, "a").set(LISTENER_TYPE, "l").set(NAME_TABLE_TYPE, "names").settle();
  stream.set(CLUSTER_TYPE, "a", "b").set(LISTENER_TYPE, "l@2").set(NAME_TABLE_TYPE, "names@2");
  assert.deepEqual([stream.next(), stream.next()], ["cds b@1", "wait"]);
  assert.deepEqual([stream.answer(CLUSTER_TYPE).next(), stream.next()], ["lds l@2", "wait"]);
  assert.deepEqual([stream.answer(LISTENER_TYPE).next()], ["nds names@2"]);
});

test("names of a type that is not served are answered as removed", () => {
  const stream = new Stream().ask("type.googleapis.com/x.Y", { subscribe: ["n"] });
  assert.equal(stream.next(), "other -n");
  assert.equal(new Stream().ask("type.googleapis.com/x.Y").next(), "idle");
});
