/** Proxies that share their steps are in the states that each would be in by itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EMPTY_REQUEST } from "./delta-request.ts";
import type { Layers, Resource } from "./resource.ts";
import { SharedSteps } from "./shared-steps.ts";
import { afterSending, type Draft, emit, onRequest, retarget, type Subscription, subscribe } from "./subscription.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "./type-urls.ts";

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
