/** Tells of patches of EnvoyFilters that change nothing for any connected proxy, some time after things have calmed down. */
import { objectKey } from "#config/schema/config-object.ts";
import { Slices } from "#lib/async/slices.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { type PatchEffects, patchEffects } from "#translate/idle-patches.ts";
import type { Chosen } from "#translate/patches/select.ts";
import type { Clock } from "../timing/clock.ts";

export interface IdlePatchReportOptions {
  readonly log: Logger;
  readonly clock: Clock;
  readonly proxies: () => Iterable<MeshProxy>;
  /** Hears of all of them. */
  readonly onChecked?: ((effects: PatchEffects) => void) | undefined;
}

const CALM_MS = 2_000;
const SLICE_MS = 2;

export class IdlePatchReport {
  readonly #options: IdlePatchReportOptions;
  /** By object, so that a changed one is told of again. */
  readonly #reported = new WeakMap<object, Set<number>>();
  #snapshot: Snapshot | undefined;
  #cancel: () => void = () => undefined;
  #run = 0;

  constructor(options: IdlePatchReportOptions) {
    this.#options = options;
  }

  /** The state of the mesh, or who is connected, changed. */
  changed(snapshot: Snapshot | undefined = this.#snapshot): void {
    this.stop();
    this.#snapshot = snapshot;
    if (snapshot === undefined || snapshot.envoyFilters.length === 0) return;
    this.#cancel = this.#options.clock.after(CALM_MS, () => void this.#check(snapshot));
  }

  stop(): void {
    this.#run++;
    this.#cancel();
  }

  async #check(snapshot: Snapshot): Promise<void> {
    const { clock, log, proxies, onChecked } = this.#options;
    const run = this.#run;
    const slices = new Slices(() => clock.now(), SLICE_MS);
    try {
      const steps = patchEffects(snapshot, [...proxies()]);
      for (let step = steps.next(); ; step = steps.next()) {
        if (step.done) {
          onChecked?.(step.value);
          return this.#report(step.value.idle);
        }
        if (slices.isOver) await slices.next();
        if (run !== this.#run) return;
      }
    } catch (thrown) {
      // It is about a message to people; the proxies have what they need.
      log.error("cannot tell which patches change nothing", { reason: errorText(thrown) });
    }
  }

  #report(idle: readonly Chosen[]): void {
    for (const { filter, index } of idle) {
      const told = this.#reported.get(filter) ?? new Set<number>();
      this.#reported.set(filter, told);
      if (told.has(index)) continue;
      told.add(index);
      this.#options.log.warn("patch changes nothing for any connected proxy", {
        object: objectKey(filter),
        field: `spec.configPatches[${index}]`,
        ...(filter.origin && { file: filter.origin.file, line: filter.origin.line }),
      });
    }
  }
}
