/** Cases of real Istio, in groups; each tells whether we give the recorded result. */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "#lib/mesh-error.ts";

export type Outcome =
  | "passed"
  /** What differs, made only when somebody wants to see it. */
  | { readonly differs: () => string }
  /** Why the case does not count: it needs something that does not exist yet. */
  | { readonly leftOut: string };

export interface Case {
  readonly name: string;
  readonly check: () => Outcome | Promise<Outcome>;
}

export interface Group {
  readonly name: string;
  /** All cases that the folder has; none when it does not have this group. */
  readonly cases: (folder: string) => Promise<readonly Case[]>;
}

export interface Failure {
  readonly case: string;
  readonly differs: () => string;
}

export interface GroupResult {
  readonly name: string;
  readonly cases: number;
  readonly passed: number;
  readonly failures: readonly Failure[];
  /** Number of cases by reason. */
  readonly leftOut: ReadonlyMap<string, number>;
}

/** Runs every case; one that throws has failed. */
export async function runGroup(group: Group, folder: string): Promise<GroupResult> {
  const cases = await group.cases(folder);
  const failures: Failure[] = [];
  const leftOut = new Map<string, number>();
  let passed = 0;
  for (const one of cases) {
    const outcome = await checkCase(one);
    if (outcome === "passed") passed++;
    else if ("leftOut" in outcome) leftOut.set(outcome.leftOut, (leftOut.get(outcome.leftOut) ?? 0) + 1);
    else failures.push({ case: one.name, differs: outcome.differs });
  }
  return { name: group.name, cases: cases.length, passed, failures, leftOut };
}

async function checkCase({ check }: Case): Promise<Outcome> {
  try {
    return await check();
  } catch (thrown) {
    return { differs: () => (thrown instanceof Error ? (thrown.stack ?? thrown.message) : errorText(thrown)) };
  }
}

/** The data, or why there is none. */
export async function findFolder(env: NodeJS.ProcessEnv): Promise<{ folder: string } | { missing: string }> {
  const folder = env.CONFORMANCE ?? join(import.meta.dirname, "../../../shared/conformance");
  const found = await stat(folder).catch(() => undefined);
  return found?.isDirectory()
    ? { folder }
    : { missing: `no folder "${folder}": set CONFORMANCE to the conformance data` };
}

/** A JSON file, or undefined when the folder does not have it. */
export async function readJson<T>(...path: readonly string[]): Promise<T | undefined> {
  const text = await readText(...path);
  return text === undefined ? undefined : (JSON.parse(text) as T);
}

/** A text file, or undefined when the folder does not have it. */
export async function readText(...path: readonly string[]): Promise<string | undefined> {
  try {
    return await readFile(join(...path), "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
