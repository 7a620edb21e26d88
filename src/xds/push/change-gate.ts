import type { Snapshot } from "#model/snapshot.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Clock } from "../timing/clock.ts";
import { type Batch, type DebounceSettings, dueAt, withChange } from "../timing/debounce.ts";
import { hasNewUnresolved } from "./references.ts";

export interface ChangeGateOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly debounce?: DebounceSettings | undefined;
  /** Receives the snapshots that go out, and when the first change in them came. */
  readonly release: (snapshot: Snapshot, changedAt: number) => void;
}

/** Holds new snapshots back until the changes in them are complete; see debounce.ts for how long. */
export class ChangeGate {
  readonly #options: ChangeGateOptions;
  #released: Snapshot | undefined;
  #releasedAt = Number.NEGATIVE_INFINITY;
  #newest: Snapshot | undefined;
  #batch: Batch | undefined;
  #cancel: () => void = () => undefined;

  constructor(options: ChangeGateOptions) {
    this.#options = options;
  }

  offer(snapshot: Snapshot): void {
    const { clock, metrics, debounce } = this.#options;
    const endpointsOnly = this.#newest !== undefined && onlyEndpointsDiffer(this.#newest, snapshot);
    for (const type of this.#newest === undefined ? ["config"] : updatesIn(this.#newest, snapshot)) {
      metrics.count("pilot_inbound_updates", { type });
    }
    this.#newest = snapshot;
    if (endpointsOnly && this.#batch !== undefined && debounce?.endpointsWait === false) {
      this.#overtake(snapshot);
      return;
    }
    this.#batch = withChange(this.#batch, { endpointsOnly, at: clock.now() });
    this.#cancel();
    const due = this.#released === undefined ? clock.now() : this.#dueAt(snapshot, this.#batch);
    const wait = due - clock.now();
    if (wait <= 0) this.#release();
    else this.#cancel = clock.after(wait, () => this.#release());
  }

  /** Whether a change waits for others that belong to it. */
  get isHolding(): boolean {
    return this.#batch !== undefined;
  }

  stop(): void {
    this.#cancel();
  }

  #dueAt(snapshot: Snapshot, batch: Batch): number {
    // What led nowhere before is not about to come.
    const unresolved = !batch.endpointsOnly && hasNewUnresolved(this.#released, snapshot);
    return dueAt(batch, { releasedAt: this.#releasedAt, unresolved }, this.#options.debounce);
  }

  /** New endpoints go out alone; what waits goes on waiting. */
  #overtake({ endpoints, workloads, version }: Snapshot): void {
    const { clock, metrics, release } = this.#options;
    if (this.#released === undefined) return;
    this.#released = { ...this.#released, endpoints, workloads, version };
    metrics.count("pilot_push_triggers", { type: "endpoint" });
    release(this.#released, clock.now());
  }

  #release(): void {
    const { clock, metrics, release } = this.#options;
    if (this.#newest === undefined || this.#batch === undefined) return;
    const { firstAt } = this.#batch;
    const triggers = this.#released === undefined ? ["config"] : triggersOf(this.#released, this.#newest);
    this.#batch = undefined;
    this.#released = this.#newest;
    this.#releasedAt = clock.now();
    metrics.observe("pilot_debounce_time", (this.#releasedAt - firstAt) / 1000);
    for (const type of triggers) metrics.count("pilot_push_triggers", { type });
    release(this.#newest, firstAt);
  }
}

/** Istio's words for what came in. */
function updatesIn(before: Snapshot, after: Snapshot): readonly string[] {
  const count = after.services.length - before.services.length;
  const services = before.services === after.services ? [] : [count < 0 ? "svcdelete" : "svc"];
  const endpoints = before.endpoints === after.endpoints ? [] : ["eds"];
  const others = before.secrets !== after.secrets || before.mesh !== after.mesh || hasOtherChanges(before, after);
  return [...services, ...endpoints, ...(others ? ["config"] : [])];
}

/** Istio's words for why there is a push. */
function triggersOf(before: Snapshot, after: Snapshot): readonly string[] {
  const differs = (field: keyof Snapshot) => before[field] !== after[field];
  return [
    ...(differs("endpoints") ? ["endpoint"] : []),
    ...(differs("services") ? ["service"] : []),
    ...(differs("secrets") ? ["secret"] : []),
    ...(differs("mesh") ? ["global"] : []),
    ...(hasOtherChanges(before, after) ? ["config"] : []),
  ];
}

/** Beside services, endpoints, secrets and the settings of the mesh. */
function hasOtherChanges(before: Snapshot, after: Snapshot): boolean {
  const { version: _, endpoints: _e, workloads: _w, services: _s, secrets: _c, mesh: _m, ...rest } = before;
  return Object.entries(rest).some(([field, value]) => Reflect.get(after, field) !== value);
}

/** Whether everything but the endpoints, and what is known of workloads, is the very same. */
function onlyEndpointsDiffer(before: Snapshot, after: Snapshot): boolean {
  const { version: _, endpoints: _e, workloads: _w, ...rest } = before;
  return Object.entries(rest).every(([field, value]) => Reflect.get(after, field) === value);
}
