/** Says aloud what several objects claim, and which delegates are not there, once each, a moment after the configuration changed. */

import { type Conflict, type ConflictMetric, conflictText } from "#explain/conflicts/conflict.ts";
import { conflictSteps, type FoundConflicts } from "#explain/conflicts/conflicts.ts";
import { unresolvedDelegates } from "#explain/delegates.ts";
import { sleep } from "#lib/async/sleep.ts";
import { Slices } from "#lib/async/slices.ts";
import type { Logger } from "#lib/log/log.ts";
import type { Source } from "#model/ports.ts";
import type { Snapshot } from "#model/snapshot.ts";

/** Nobody waits for it, and many changes come together. */
const QUIET_MS = 500;
const SLICE_MS = 4;
/** Lines of a kind about one change. */
const MAX_LINES = 50;

export interface ConflictWatchInput {
  readonly source: Pick<Source, "current" | "objects" | "subscribe">;
  readonly log: Logger;
  readonly now: () => number;
  /** A conflict that was not there before. */
  readonly onConflict?: (conflict: Conflict) => void;
}

type Watched = Pick<Snapshot, "services" | "virtualServices" | "destinationRules" | "gateways">;

/** Knows the conflicts of the newest configuration. */
export class ConflictWatch {
  readonly #input: ConflictWatchInput;
  #seen: Watched | undefined;
  #found: FoundConflicts = [];
  #conflicts: readonly Conflict[] = [];
  #said: ReadonlySet<string> = new Set();

  constructor(input: ConflictWatchInput) {
    this.#input = input;
  }

  get conflicts(): readonly Conflict[] {
    return this.#conflicts;
  }

  /** How many there are under a metric. */
  count(metric: ConflictMetric): number {
    return this.#conflicts.filter((conflict) => conflict.metric === metric).length;
  }

  /** Looks again after each change until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    let changed = Promise.withResolvers<void>();
    const stop = this.#input.source.subscribe(() => changed.resolve());
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    while (!signal.aborted) {
      await Promise.race([changed.promise, aborted]);
      changed = Promise.withResolvers();
      await sleep(QUIET_MS, signal);
      if (!signal.aborted) await this.look();
    }
    stop();
  }

  /** Looks at the newest configuration, if it is another one than the last time. */
  async look(): Promise<void> {
    const { source, now } = this.#input;
    const snapshot = source.current();
    if (this.#seen !== undefined && isSame(this.#seen, snapshot)) return;
    this.#seen = snapshot;
    const objects = source.objects();
    this.#found = await new Slices(now, SLICE_MS).run(conflictSteps(snapshot, objects, this.#found));
    this.#conflicts = this.#found.flatMap(({ conflicts }) => conflicts);
    const { virtualServices, mesh } = snapshot;
    this.#say(unresolvedDelegates(virtualServices, objects, mesh.defaultVirtualServiceExportTo));
  }

  #say(delegates: readonly string[]): void {
    const { log, onConflict } = this.#input;
    const isFresh = (text: string) => !this.#said.has(text);
    const byText = new Map(this.#conflicts.map((conflict) => [conflictText(conflict), conflict]));
    const freshConflicts = [...byText].filter(([text]) => isFresh(text));
    const freshDelegates = delegates.filter(isFresh);
    warnOfMost(log, { texts: freshConflicts.map(([text]) => text), rest: "conflicts: see /debug/push_status" });
    warnOfMost(log, { texts: freshDelegates, rest: "such delegates: said after the next change" });
    for (const [, conflict] of freshConflicts) onConflict?.(conflict);
    // No page shows delegates: those without a line are still to be said.
    this.#said = new Set([...byText.keys(), ...delegates]).difference(new Set(freshDelegates.slice(MAX_LINES)));
  }
}

/** `rest` says what the others are, and where they are found. */
function warnOfMost(log: Logger, { texts, rest }: { readonly texts: readonly string[]; readonly rest: string }): void {
  for (const text of texts.slice(0, MAX_LINES)) log.warn(text);
  if (texts.length > MAX_LINES) log.warn(`${texts.length - MAX_LINES} more ${rest}`);
}

/** The watch of a control plane: it also counts the servers of gateways that are left out, under Istio's labels. */
export function conflictWatch(input: {
  readonly source: ConflictWatchInput["source"];
  readonly metrics: { count(name: "pilot_total_rejected_configs", labels: Readonly<Record<string, string>>): void };
  readonly log: Logger;
}): ConflictWatch {
  const onConflict = ({ metric, loser }: Conflict) => {
    if (metric !== "pilot_total_rejected_configs") return;
    input.metrics.count(metric, { type: "gateway", name: loser.slice(loser.indexOf("/") + 1) });
  };
  return new ConflictWatch({ source: input.source, log: input.log.scope("model"), now: Date.now, onConflict });
}

/** Endpoints come and go without conflicts of their own. */
function isSame(a: Watched, b: Watched): boolean {
  return (
    a.services === b.services &&
    a.virtualServices === b.virtualServices &&
    a.destinationRules === b.destinationRules &&
    a.gateways === b.gateways
  );
}
