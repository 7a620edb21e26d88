/** Proxies that share their steps are in the states that each would be in by itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EMPTY_REQUEST } from "./messages/delta-request.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "./messages/type-urls.ts";
import type { Layers, Resource } from "./resource.ts";
import { isIdle, newSession, nextResponse, receive, retargetTypes, type Session, sent } from "./session.ts";
import { SharedSteps, type Targets } from "./shared-steps.ts";
import { afterSending, type Draft, emit, onRequest, retarget, type Subscription, subscribe } from "./subscription.ts";

const NAMES = ["a", "b", "c"];

function layersOf(versions: Readonly<Record<string, string>>): Layers<Resource> {
  const resources = Object.entries(versions).map(([name, version]) => [
    name,
    { name, version, value: Buffer.from(version), awaits: undefined },
  ]);
  return [new Map(resources as [string, Resource][])];
}

/** One proxy, with its state as it would be alone. */
class Pair {
  readonly #steps: SharedSteps<Resource>;
  readonly typeUrl: string;
  alone: Subscription<Resource>;
  shared: Subscription<Resource>;

  constructor(steps: SharedSteps<Resource>, typeUrl: string, names: readonly string[]) {
    this.#steps = steps;
    this.typeUrl = typeUrl;
    const request = { ...EMPTY_REQUEST, typeUrl, subscribe: names };
    this.alone = subscribe(request);
    this.shared = steps.subscribe(request, "delta");
  }

  retarget(target: Layers<Resource>): void {
    this.alone = retarget(this.alone, target);
    this.shared = this.#steps.retarget(this.shared, target);
  }

  send(nonce: string): void {
    const removals = this.typeUrl === ENDPOINT_TYPE;
    const [alone, shared] = [emit(this.alone, { removals }), this.#steps.emit(this.shared, { removals })];
    assert.deepEqual(shared, alone);
    if (alone === undefined || shared === undefined) return;
    this.alone = afterSending(alone as Draft<Resource>, nonce);
    this.shared = this.#steps.afterSending(shared, nonce);
  }

  answer(rest: {
    readonly subscribe?: readonly string[];
    readonly unsubscribe?: readonly string[];
    rejects?: boolean;
  }) {
    const { rejects = false, ...names } = rest;
    const nonce = this.alone.pending?.nonce ?? "";
    const error = rejects && nonce !== "" ? { code: 3, message: "a is bad" } : undefined;
    const request = { ...EMPTY_REQUEST, typeUrl: this.typeUrl, nonce, error, ...names };
    const [alone, shared] = [onRequest(this.alone, request), this.#steps.onRequest(this.shared, request)];
    assert.deepEqual(shared, alone);
    this.alone = alone.subscription;
    this.shared = shared.subscription;
  }
}

const versions = fc.dictionary(fc.constantFrom(...NAMES), fc.constantFrom("1", "2"));
const who = fc.nat({ max: 2 });
const action = fc.oneof(
  { weight: 3, arbitrary: fc.record({ who, target: fc.nat({ max: 3 }) }) },
  { weight: 4, arbitrary: fc.record({ who, nonce: fc.constantFrom("n1", "n2") }) },
  {
    weight: 4,
    arbitrary: fc.record({ who, rejects: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.boolean()) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ who, subscribe: fc.subarray(NAMES), unsubscribe: fc.subarray(NAMES) }),
  },
  { weight: 1, arbitrary: fc.constant("clear" as const) },
);

test("whatever proxies do, sharing their steps changes nothing", () => {
  const asked = fc.array(fc.subarray(NAMES), { minLength: 3, maxLength: 3 });
  const targets = fc.array(versions, { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(
      fc.constantFrom(CLUSTER_TYPE, ENDPOINT_TYPE),
      asked,
      targets,
      fc.array(action, { maxLength: 60, size: "max" }),
      (typeUrl, names, meshes, actions) => {
        const steps = new SharedSteps<Resource>();
        const pairs = names.map((each) => new Pair(steps, typeUrl, each));
        const layers = meshes.map(layersOf);
        for (const step of actions) {
          if (step === "clear") {
            steps.clear();
            continue;
          }
          const pair = pairs[step.who];
          assert.ok(pair);
          if ("target" in step) pair.retarget(layers[step.target] ?? []);
          else if ("nonce" in step) pair.send(step.nonce);
          else pair.answer(step);
          assert.deepEqual(pair.shared, pair.alone);
        }
      },
    ),
    { numRuns: 1_000 },
  );
});

test("proxies that ask for the same and are told the same are in one and the same state", () => {
  const steps = new SharedSteps<Resource>();
  const request = () => ({ ...EMPTY_REQUEST, typeUrl: ENDPOINT_TYPE, subscribe: ["a", "b"] });
  const target = layersOf({ a: "1", b: "1" });
  const told = () => {
    const draft = steps.emit(steps.retarget(steps.subscribe(request(), "delta"), target), { removals: false });
    assert.ok(draft);
    const after = steps.afterSending(draft, "n");
    return steps.onRequest(after, { ...EMPTY_REQUEST, typeUrl: ENDPOINT_TYPE, nonce: "n" }).subscription;
  };
  const first = told();
  assert.equal(told(), first);
  steps.clear();
  const later = told();
  assert.notEqual(later, first);
  assert.equal(later.names, first.names);
  // Who took another way goes on with the others.
  const next = layersOf({ a: "2", b: "1" });
  assert.equal(steps.retarget(later, next), steps.retarget(first, next));
});

/** A stream with several types, and the same stream as it would be alone. */
class Twins {
  alone: Session<Resource> = newSession();
  shared: Session<Resource>;
  #now = 0;

  constructor(steps: SharedSteps<Resource>) {
    this.shared = newSession("delta", steps);
  }

  ask(typeUrl: string, names: readonly string[]): void {
    this.#receive({ ...EMPTY_REQUEST, typeUrl, subscribe: names });
  }

  retarget(targets: Targets<Resource>): void {
    this.alone = retargetTypes(this.alone, targets);
    this.shared = retargetTypes(this.shared, targets);
  }

  send(nonce: string): void {
    const [alone, shared] = [nextResponse(this.alone, this.#now), nextResponse(this.shared, this.#now)];
    assert.equal(shared.kind, alone.kind);
    if (alone.kind !== "send" || shared.kind !== "send") return;
    assert.equal(shared.typeUrl, alone.typeUrl);
    assert.deepEqual(inOrder(shared.draft), inOrder(alone.draft));
    const how = { nonce, sentAt: this.#now };
    this.alone = sent(this.alone, alone, how);
    this.shared = sent(this.shared, shared, how);
  }

  answer(typeUrl: string): void {
    const nonce = this.alone.types.get(typeUrl)?.pending?.nonce;
    if (nonce !== undefined) this.#receive({ ...EMPTY_REQUEST, typeUrl, nonce });
  }

  compare(): void {
    this.#now += 100;
    assert.deepEqual(this.shared.types.keys(), this.alone.types.keys());
    for (const typeUrl of this.alone.types.keys()) {
      const [alone, shared] = [this.alone.types.get(typeUrl), this.shared.types.get(typeUrl)];
      assert.ok(alone && shared);
      assert.deepEqual(comparable(shared), comparable(alone));
    }
    assert.equal(isIdle(this.shared, this.#now), isIdle(this.alone, this.#now));
    assert.equal(isIdle(this.shared, this.#now), nextResponse(this.alone, this.#now).kind === "idle");
  }

  #receive(request: typeof EMPTY_REQUEST): void {
    this.alone = receive(this.alone, request, this.#now).session;
    this.shared = receive(this.shared, request, this.#now).session;
  }
}

function comparable(state: Subscription<Resource>) {
  const { pending, good } = state;
  return { ...state, pending: pending && inOrder(pending), good: { ...good, since: good.since.map(inOrder) } };
}

/** Who asked for the same names in another order is told them in that of somebody else. */
function inOrder({ resources, removed }: Pick<Draft<Resource>, "resources" | "removed">) {
  return { resources: new Set(resources), removed: removed.toSorted() };
}

test("whatever proxies do with several types, sharing their states changes nothing", () => {
  const typeUrl = fc.constantFrom(CLUSTER_TYPE, ENDPOINT_TYPE);
  const step = fc.oneof(
    { weight: 2, arbitrary: fc.record({ who, asks: typeUrl, names: fc.subarray(NAMES) }) },
    { weight: 3, arbitrary: fc.record({ who, target: fc.nat({ max: 3 }) }) },
    { weight: 4, arbitrary: fc.record({ who, nonce: fc.constantFrom("n1", "n2") }) },
    { weight: 4, arbitrary: fc.record({ who, answers: typeUrl }) },
    { weight: 1, arbitrary: fc.constant("clear" as const) },
  );
  const both = fc.record({ [CLUSTER_TYPE]: versions, [ENDPOINT_TYPE]: versions });
  const meshes = fc.array(both, { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(meshes, fc.array(step, { maxLength: 60, size: "max" }), (all, steps) => {
      const together = new SharedSteps<Resource>();
      const twins = [0, 1, 2].map(() => new Twins(together));
      const targets = all.map((mesh) => new Map(Object.entries(mesh).map(([type, own]) => [type, layersOf(own)])));
      for (const each of steps) {
        if (each === "clear") {
          together.clear();
          continue;
        }
        const twin = twins[each.who];
        assert.ok(twin);
        if ("asks" in each) twin.ask(each.asks, each.names);
        else if ("target" in each) twin.retarget(targets[each.target] ?? new Map());
        else if ("nonce" in each) twin.send(each.nonce);
        else twin.answer(each.answers);
        twin.compare();
      }
    }),
    { numRuns: 1_000 },
  );
});
