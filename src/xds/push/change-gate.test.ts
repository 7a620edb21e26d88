import assert from "node:assert/strict";
import { test } from "node:test";
import type { Snapshot } from "#model/snapshot.ts";
import { meshOf } from "../../../test/support/mesh.ts";
import { NO_METRICS } from "../metrics/metrics.ts";
import type { Clock } from "../timing/clock.ts";
import type { DebounceSettings } from "../timing/debounce.ts";
import { ChangeGate } from "./change-gate.ts";

class FakeClock implements Clock {
  time = 1_000_000;
  #timers = new Map<object, { readonly at: number; readonly callback: () => void }>();
  now() {
    return this.time;
  }
  after(ms: number, callback: () => void) {
    const key = {};
    this.#timers.set(key, { at: this.time + ms, callback });
    return () => void this.#timers.delete(key);
  }
  advance(ms: number) {
    this.time += ms;
    for (const [key, { at, callback }] of [...this.#timers]) {
      if (at <= this.time && this.#timers.delete(key)) callback();
    }
  }
}

function gate(debounce?: DebounceSettings) {
  const clock = new FakeClock();
  const released: { version: number; changedAt: number }[] = [];
  const snapshots: Snapshot[] = [];
  const release = (snapshot: Snapshot, changedAt: number) => {
    snapshots.push(snapshot);
    released.push({ version: snapshot.version, changedAt });
  };
  return { clock, released, snapshots, gate: new ChangeGate({ clock, metrics: NO_METRICS, debounce, release }) };
}

const SERVICE = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: a}
spec:
  hosts: [a.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.1}]
`;
const ROUTE = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a}
spec:
  hosts: [a.example.com]
  http: [{route: [{destination: {host: a.example.com, subset: v1}}]}]
`;
const RULE = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: a}
spec: {host: a.example.com, subsets: [{name: v1, labels: {version: v1}}]}
`;

test("the first snapshot goes out at once", () => {
  const { gate: changes, released } = gate();
  changes.offer(meshOf(""));
  assert.equal(released.length, 1);
});

test("a change of endpoints goes out at once", () => {
  const { gate: changes, released, clock } = gate();
  const before = meshOf(SERVICE);
  changes.offer(before);
  clock.advance(50);
  changes.offer(meshOf(SERVICE.replace("10.0.0.1", "10.0.0.2"), { previous: before }));
  assert.equal(released.length, 2);
});

test("a pod that is there goes out at once", () => {
  const { gate: changes, released, clock } = gate();
  const before = meshOf(SERVICE);
  changes.offer(before);
  clock.advance(50);
  const pod = `${SERVICE}---\napiVersion: v1\nkind: Pod\nmetadata: {name: a-1, labels: {app: a}}\nspec: {containers: []}\n`;
  changes.offer(meshOf(pod, { previous: before }));
  assert.equal(released.length, 2);
});

test("changes of configuration go out together, as the newest snapshot, with the time of the first", () => {
  const { gate: changes, released, clock } = gate();
  const empty = meshOf("");
  changes.offer(empty);
  clock.advance(1_000);
  const first = clock.now();
  const one = meshOf(SERVICE, { previous: empty });
  const two = meshOf(`${SERVICE}---${RULE}`, { previous: one });
  changes.offer(one);
  clock.advance(3);
  changes.offer(two);
  clock.advance(4);
  assert.equal(released.length, 1);
  clock.advance(1);
  assert.deepEqual(released.slice(1), [{ version: two.version, changedAt: first }]);
});

test("a route to a subset that does not exist yet waits for it, but not longer than 100 ms", () => {
  const { gate: changes, released, clock } = gate();
  const base = meshOf(SERVICE);
  changes.offer(base);
  clock.advance(1_000);
  const early = meshOf(`${SERVICE}---${ROUTE}`, { previous: base });
  changes.offer(early);
  clock.advance(40);
  assert.equal(released.length, 1);
  changes.offer(meshOf(`${SERVICE}---${ROUTE}---${RULE}`, { previous: early }));
  clock.advance(10);
  assert.equal(released.length, 2, "it is complete");
});

test("a reference that stays unresolved holds up its own change only", () => {
  const { gate: changes, released, clock } = gate();
  const base = meshOf(SERVICE);
  changes.offer(base);
  clock.advance(1_000);
  const dangling = meshOf(`${SERVICE}---${ROUTE}`, { previous: base });
  changes.offer(dangling);
  clock.advance(100);
  assert.equal(released.length, 2, "after 100 ms it goes as it is");
  changes.offer(meshOf(`${SERVICE.replaceAll("80", "81")}---${ROUTE}`, { previous: dangling }));
  clock.advance(10);
  assert.equal(released.length, 3);
});

test("nothing goes out after the end", () => {
  const { gate: changes, released, clock } = gate();
  changes.offer(meshOf(""));
  changes.offer(meshOf(SERVICE));
  changes.stop();
  clock.advance(1_000);
  assert.equal(released.length, 1);
});

test("endpoints that never wait overtake configuration that does", () => {
  const { gate: changes, snapshots, clock } = gate({ afterMs: 1_000, endpointsWait: false });
  const base = meshOf(SERVICE);
  changes.offer(base);
  clock.advance(50);
  const ruled = meshOf(`${SERVICE}---${RULE}`, { previous: base });
  changes.offer(ruled);
  clock.advance(10);
  const moved = meshOf(`${SERVICE.replace("10.0.0.1", "10.0.0.2")}---${RULE}`, { previous: ruled });
  changes.offer(moved);
  assert.equal(snapshots.length, 2);
  assert.equal(snapshots[1]?.endpoints, moved.endpoints);
  assert.equal(snapshots[1]?.destinationRules, base.destinationRules);
  clock.advance(990);
  assert.equal(snapshots[2], moved, "the wait of the configuration is not longer for it");
});
