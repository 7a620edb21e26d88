/**
 * The fuzzing loop: change an input, run the target, keep the input if it reached something new.
 *
 *   corpus -> mutated() -> target.run() -> new blocks?  -> corpus
 *                                       -> error, slow? -> finding
 */
import type { Coverage } from "./coverage.ts";
import { mutated, type Random } from "./mutate.ts";
import type { FuzzTarget } from "./target.ts";

/** More for an input of a few kilobytes means that cost grows too fast. */
const MOST_MS = 200;
const SHRINK_RUNS = 400;
const NEWEST = 8;
const BATCH = 32;

export interface Finding {
  readonly input: Buffer;
  readonly message: string;
}

export interface ExploreOptions {
  readonly target: FuzzTarget;
  readonly coverage: Coverage;
  readonly random: Random;
  readonly corpus: readonly Buffer[];
  /** Called before each run. False ends the loop. */
  readonly next: (input: Buffer) => boolean;
}

export interface Explored {
  readonly corpus: readonly Buffer[];
  readonly finding: Finding | undefined;
}

/** Runs until `next` says no, or until something is found. */
export async function explore({ target, coverage, random, corpus, next }: ExploreOptions): Promise<Explored> {
  const inputs: Buffer[] = [];
  const found = (input: Buffer, message: string): Explored => ({ corpus: inputs, finding: { input, message } });
  coverage.discard();
  for (const input of corpus.length === 0 ? [Buffer.alloc(0)] : corpus) {
    next(input);
    const message = await problemOf(target, input);
    if (message !== undefined) return found(input, message);
    coverage.add();
    inputs.push(input);
  }
  for (;;) {
    // To ask for coverage costs as much as many runs, and few inputs reach something new.
    const batch: Buffer[] = [];
    while (batch.length < BATCH) {
      const input = nextInput(target, inputs, random);
      if (!next(input)) return { corpus: inputs, finding: undefined };
      const message = await problemOf(target, input);
      if (message !== undefined) return found(await shrunk(target, input), message);
      batch.push(input);
    }
    if (!coverage.hasNew()) continue;
    for (const input of batch) {
      next(input);
      await target.run(input);
      if (coverage.add()) inputs.push(input);
    }
  }
}

function nextInput({ dictionary, maxBytes }: FuzzTarget, inputs: readonly Buffer[], random: Random): Buffer {
  // Half of the time one of the newest: what it reached is explored least.
  const first = random(2) === 0 ? Math.max(0, inputs.length - NEWEST) : 0;
  const base = inputs[first + random(inputs.length - first)] ?? Buffer.alloc(0);
  return Buffer.from(mutated(base, { random, others: inputs, dictionary, maxBytes }));
}

/** The shortest inputs that together reach every block that all inputs reach, of at most `maxBytes` in total. */
export async function smallestCorpus(
  { target, coverage }: Pick<ExploreOptions, "target" | "coverage">,
  inputs: readonly Buffer[],
  maxBytes: number,
): Promise<readonly Buffer[]> {
  coverage.reset();
  const kept: Buffer[] = [];
  let bytes = 0;
  for (const input of inputs.toSorted((a, b) => a.length - b.length)) {
    await target.run(input);
    if (bytes + input.length > maxBytes) break;
    if (!coverage.add()) continue;
    kept.push(input);
    bytes += input.length;
  }
  return kept;
}

/** Why an input is a finding; undefined if all is well. */
export async function problemOf(target: FuzzTarget, input: Buffer): Promise<string | undefined> {
  let shortest = Number.POSITIVE_INFINITY;
  try {
    for (let again = 0; again < 3; again++) {
      // CPU time: other programs do not matter.
      const start = process.cpuUsage();
      await target.run(input);
      const { user, system } = process.cpuUsage(start);
      shortest = Math.min(shortest, (user + system) / 1000);
      if (shortest <= MOST_MS) return undefined;
    }
  } catch (thrown) {
    return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  }
  return `takes ${Math.round(shortest)} ms of CPU for ${input.length} bytes`;
}

/** A shorter input that is a finding, too. */
async function shrunk(target: FuzzTarget, input: Buffer): Promise<Buffer> {
  let shortest = input;
  let runs = 0;
  for (let size = Math.ceil(input.length / 2); size >= 1 && runs < SHRINK_RUNS; size = Math.floor(size / 2)) {
    for (let at = 0; at < shortest.length && runs < SHRINK_RUNS; runs++) {
      const shorter = Buffer.concat([shortest.subarray(0, at), shortest.subarray(at + size)]);
      if ((await problemOf(target, shorter)) === undefined) at += size;
      else shortest = shorter;
    }
  }
  return shortest;
}
