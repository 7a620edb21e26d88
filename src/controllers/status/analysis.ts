/** Analyses the mesh again when it has changed, but not all the time. */
import { type AnalysisInput, analysisSteps } from "#explain/analysis/analyze.ts";
import type { Finding } from "#explain/analysis/message.ts";
import { sleep } from "#lib/async/sleep.ts";
import { Slices } from "#lib/async/slices.ts";
import type { Source } from "#model/ports.ts";

export interface AnalysisOptions {
  readonly source: Source;
  /** Between two analyses. */
  readonly intervalMs: number;
}

const SLICE_MS = 4;
/** What is applied together is analysed together. */
const QUIET_MS = 1_000;

export class Analysis {
  readonly #options: AnalysisOptions;
  #findings: ReadonlyMap<string, readonly Finding[]> | undefined;

  constructor(options: AnalysisOptions) {
    this.#options = options;
  }

  /** By object; undefined before the first analysis. */
  get findings(): ReadonlyMap<string, readonly Finding[]> | undefined {
    return this.#findings;
  }

  /** Looks again after changes until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { source, intervalMs } = this.#options;
    let changed = Promise.withResolvers<void>();
    const stop = source.subscribe(() => changed.resolve());
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    for (let pause = 0; !signal.aborted; pause = Math.max(QUIET_MS, intervalMs)) {
      await sleep(pause, signal);
      changed = Promise.withResolvers();
      if (!signal.aborted) await this.look();
      await Promise.race([changed.promise, aborted]);
    }
    stop();
  }

  /** Analyses what there is now. */
  async look(): Promise<void> {
    const { source } = this.#options;
    const input: AnalysisInput = {
      objects: source.objects(),
      problems: source.problems(),
      mesh: source.current().mesh,
    };
    this.#findings = await new Slices(() => performance.now(), SLICE_MS).run(analysisSteps(input));
  }
}
