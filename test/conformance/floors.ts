/**
 * What each group reached before. A floor is a number of passed cases of a known number of cases: with other data, where
 * the number of cases differs, it says nothing and is not applied.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { GroupResult } from "./harness.ts";

export interface Floor {
  readonly cases: number;
  readonly passed: number;
}

export type Floors = Readonly<Record<string, Floor>>;

const FILE = join(import.meta.dirname, "floors.json");

export async function readFloors(): Promise<Floors> {
  return JSON.parse(await readFile(FILE, "utf8")) as Floors;
}

/** A sentence when the group fell below its floor. */
export function belowFloor(result: GroupResult, floors: Floors): string | undefined {
  const floor = floors[result.name];
  if (floor === undefined || floor.cases !== result.cases || result.passed >= floor.passed) return undefined;
  return `${result.name}: ${result.passed} of ${result.cases} cases pass, and ${floor.passed} did before`;
}

/** Floors after these results. They only rise; data with another number of cases starts a new count. */
export function raisedFloors(floors: Floors, results: readonly GroupResult[]): Floors {
  const raised = results.map(({ name, cases, passed }): [string, Floor] => {
    const floor = floors[name];
    const before = floor?.cases === cases ? floor.passed : 0;
    return [name, { cases, passed: Math.max(before, passed) }];
  });
  return { ...floors, ...Object.fromEntries(raised) };
}

export async function writeFloors(floors: Floors): Promise<void> {
  const sorted = Object.fromEntries(Object.entries(floors).sort(([a], [b]) => (a < b ? -1 : 1)));
  const lines = Object.entries(sorted).map(
    ([name, { cases, passed }]) => `  ${JSON.stringify(name)}: { "cases": ${cases}, "passed": ${passed} }`,
  );
  await writeFile(FILE, `{\n${lines.join(",\n")}\n}\n`);
}
