import type { Snapshot } from "#model/snapshot.ts";
import type { Clock } from "./clock.ts";
import { type Batch, dueAt, withChange } from "./debounce.ts";
import type { Metrics } from "./metrics.ts";
import { unresolvedReferences } from "./references.ts";

export interface ChangeGateOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
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
    const { clock, metrics } = this.#options;
    const endpointsOnly = this.#newest !== undefined && onlyEndpointsDiffer(this.#newest, snapshot);
    metrics.count("pilot_inbound_updates", { type: endpointsOnly ? "eds" : "config" });
    this.#newest = snapshot;
    this.#batch = withChange(this.#batch, { endpointsOnly, at: clock.now() });
    this.#cancel();
    const due = this.#released === undefined ? clock.now() : this.#dueAt(snapshot, this.#batch);
    const wait = due - clock.now();
    if (wait <= 0) this.#release();
    else this.#cancel = clock.after(wait, () => this.#release());
  }

  stop(): void {
    this.#cancel();
  }

  #dueAt(snapshot: Snapshot, batch: Batch): number {
    const unresolved = !batch.endpointsOnly && this.#hasNewUnresolved(snapshot);
    return dueAt(batch, { releasedAt: this.#releasedAt, unresolved });
  }

  /** What led nowhere before is not about to come. */
  #hasNewUnresolved(snapshot: Snapshot): boolean {
    const before = this.#released === undefined ? new Set<string>() : unresolvedReferences(this.#released);
    return !unresolvedReferences(snapshot).isSubsetOf(before);
  }

  #release(): void {
    const { clock, metrics, release } = this.#options;
    if (this.#newest === undefined || this.#batch === undefined) return;
    const { firstAt, endpointsOnly } = this.#batch;
    this.#batch = undefined;
    this.#released = this.#newest;
    this.#releasedAt = clock.now();
    metrics.observe("pilot_debounce_time", (this.#releasedAt - firstAt) / 1000);
    metrics.count("pilot_push_triggers", { type: endpointsOnly ? "endpoint" : "config" });
    release(this.#newest, firstAt);
  }
}

/** Whether everything but the endpoints is the very same. */
function onlyEndpointsDiffer(before: Snapshot, after: Snapshot): boolean {
  const { version: _, endpoints: __, ...rest } = before;
  return Object.entries(rest).every(([field, value]) => Reflect.get(after, field) === value);
}
