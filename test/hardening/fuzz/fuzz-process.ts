/**
 * Fuzzes one target in a process of its own, because an input may exhaust the heap or never end. The input that runs is in a
 * file, after the number of runs so far, so that the parent finds it in any case.
 */
import { openSync, writeSync } from "node:fs";
import { Coverage } from "./coverage.ts";
import { explore, smallestCorpus } from "./explore.ts";
import { seededRandom } from "./mutate.ts";
import type { FuzzTarget } from "./target.ts";

export interface FuzzRequest {
  /** Module with the target. */
  readonly file: string;
  readonly corpus: readonly Uint8Array[];
  readonly durationMs: number;
  readonly seed: number;
  readonly maxCorpusBytes: number;
  /** File for the number of runs, the length of the current input, and that input. */
  readonly progress: string;
}

export interface FuzzAnswer {
  readonly runs: number;
  readonly corpus: readonly Uint8Array[];
  readonly finding: { readonly input: Uint8Array; readonly message: string } | undefined;
}

process.once("message", async (request: FuzzRequest) => {
  const answer = await fuzz(request);
  process.send?.(answer, undefined, {}, () => process.disconnect());
});

async function fuzz({ file, corpus, durationMs, seed, maxCorpusBytes, progress }: FuzzRequest): Promise<FuzzAnswer> {
  const coverage = new Coverage((url) => url.includes("/src/"));
  const { target }: { readonly target: FuzzTarget } = await import(file);
  const descriptor = openSync(progress, "w");
  const head = Buffer.alloc(8);
  const end = performance.now() + durationMs;
  let runs = 0;
  const begin = (input: Buffer) => {
    head.writeUInt32LE(++runs, 0);
    head.writeUInt32LE(input.length, 4);
    writeSync(descriptor, Buffer.concat([head, input]), 0, undefined, 0);
    return performance.now() < end;
  };
  const seeds = corpus.map((bytes) => Buffer.from(bytes));
  const explored = await explore({ target, coverage, random: seededRandom(seed), corpus: seeds, next: begin });
  const smallest = await smallestCorpus({ target, coverage }, explored.corpus, maxCorpusBytes);
  return { runs, corpus: smallest, finding: explored.finding };
}
