/**
 * Asserts that cost grows at most linearly: inputs of size n, 2n, 4n ... up to the largest accepted size. Noise of a shared
 * machine only adds to a measurement, so each size counts with its cheapest repetition.
 */
import assert from "node:assert/strict";
import type { Cost } from "./measured-program.ts";

/** Below it, what a measurement says about growth is noise. */
const MEASURABLE_MS = 20;
/** Linear is 1, quadratic 2. Caches, garbage collection and noise lie between. */
const MAX_SLOPE = 1.4;
/** Of two neighbouring sizes, where only these could be measured. */
const MAX_RATIO = 3;
const MAX_TURN_MS = 200;
/** Garbage that V8 has not collected yet. */
const MEMORY_SLACK_BYTES = 128 * 1024 * 1024;
const REPETITIONS = 3;
/** Larger sizes would take even longer, and say no more. */
const TOO_EXPENSIVE_MS = 2_000;

export interface GrowthCase {
  /** In ascending order, each twice the one before. */
  readonly sizes: readonly number[];
  /** What serving an input of that size costs. */
  readonly costOf: (size: number) => Promise<Cost>;
}

export interface Measured extends Cost {
  readonly size: number;
}

/** Sizes from `smallest` to `largest`, by doubling. */
export function doublings(smallest: number, largest: number): readonly number[] {
  const sizes: number[] = [];
  for (let size = smallest; size <= largest; size *= 2) sizes.push(size);
  return sizes;
}

export async function assertLinear({ sizes, costOf }: GrowthCase): Promise<void> {
  await costOf(sizes[0] ?? 1); // compiles the code
  const measured: Measured[] = [];
  for (const size of sizes) {
    const cost = await cheapest(size, costOf);
    measured.push(cost);
    if (cost.cpuMs > TOO_EXPENSIVE_MS) break;
  }
  const problem = problemOf(measured);
  assert.equal(problem, undefined, `${problem}\n${table(measured)}`);
}

/** Why the costs are too high; undefined if they are not. */
export function problemOf(measured: readonly Measured[]): string | undefined {
  const points = measured.filter(({ cpuMs }) => cpuMs > MEASURABLE_MS);
  const [first, second] = points;
  if (points.length >= 3) {
    const slope = slopeOf(points.map(({ size, cpuMs }) => [Math.log2(size), Math.log2(cpuMs)]));
    if (slope > MAX_SLOPE) return `CPU time grows with the power ${slope.toFixed(2)} of the size`;
  } else if (first !== undefined && second !== undefined && second.cpuMs > MAX_RATIO * first.cpuMs) {
    return "CPU time grows faster than the size";
  }
  const last = measured.at(-1);
  if (last === undefined) return "nothing was measured";
  if (last.longestMs > MAX_TURN_MS) return `one turn of the event loop takes ${Math.round(last.longestMs)} ms of CPU`;
  const base = measured[0]?.peakBytes ?? 0;
  for (const [index, { peakBytes }] of measured.entries()) {
    const before = measured[index - 1]?.peakBytes ?? peakBytes;
    if (peakBytes - base > 2 * (before - base) + MEMORY_SLACK_BYTES) return "memory grows faster than the size";
  }
  return undefined;
}

async function cheapest(size: number, costOf: GrowthCase["costOf"]): Promise<Measured> {
  const costs = [await costOf(size)];
  // What is too cheap to be measured, or far too expensive, needs no second opinion.
  const isClear = ({ cpuMs }: Cost) => cpuMs <= MEASURABLE_MS || cpuMs >= TOO_EXPENSIVE_MS;
  while (costs.length < REPETITIONS && !costs.some(isClear)) costs.push(await costOf(size));
  const least = (key: keyof Cost) => Math.min(...costs.map((cost) => cost[key]));
  return { size, cpuMs: least("cpuMs"), longestMs: least("longestMs"), peakBytes: least("peakBytes") };
}

/** By least squares. */
function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map(([one]) => one)), mean(points.map(([, one]) => one))];
  const products = points.map(([px, py]) => (px - x) * (py - y));
  return mean(products) / mean(points.map(([px]) => (px - x) ** 2));
}

function table(measured: readonly Measured[]): string {
  const mega = (bytes: number) => (bytes / 2 ** 20).toFixed(0);
  const rows = measured.map(
    ({ size, cpuMs, longestMs, peakBytes }) =>
      `${size}: ${cpuMs.toFixed(0)} ms CPU, longest turn ${longestMs.toFixed(0)} ms, peak ${mega(peakBytes)} MB`,
  );
  return rows.join("\n");
}
