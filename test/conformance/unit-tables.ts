/**
 * Unit tables: files `<package>/tables/<TestName>.json`, each a list of rows for one upstream function. A group names the
 * packages it covers and, for each upstream function, what our counterpart says to a row.
 *
 *   export const dnsTables = unitTables("unit tables: dns", ["pkg/dns"], {
 *     roundRobinResponse: byRow<{ in: string; out: string }>(({ in: given, out }) => compareJson(shuffle(given), out)),
 *     somethingOld: leftOut("Istio itself no longer calls it"),
 *   });
 */
import { glob } from "node:fs/promises";
import { join } from "node:path";
import { type Case, type Group, type Outcome, readJson } from "./harness.ts";

export interface TableFile {
  /** The upstream function, in the data's words. */
  readonly function: string;
  readonly note: string;
  /** `path/x_test.go:TestX` */
  readonly source: string;
  readonly cases: readonly object[];
}

/** What our counterpart of an upstream function says to one row of its table. */
export type RowCheck = (row: object, table: TableFile) => Outcome | Promise<Outcome>;

/** All tables of some packages and of those below them. */
export function unitTables(
  name: string,
  packages: readonly string[],
  functions: Readonly<Record<string, RowCheck>>,
): Group {
  return { name, cases: (folder) => casesOf(folder, packages, functions) };
}

/** A check whose rows have a known shape. */
export function byRow<Row extends object>(check: (row: Row, table: TableFile) => Outcome | Promise<Outcome>): RowCheck {
  return (row, table) => check(row as Row, table);
}

/** A function without a counterpart; the reason is one that a user of Istio would accept. */
export function leftOut(reason: string): RowCheck {
  return () => ({ leftOut: reason });
}

async function casesOf(
  folder: string,
  packages: readonly string[],
  functions: Readonly<Record<string, RowCheck>>,
): Promise<readonly Case[]> {
  const cases: Case[] = [];
  for (const path of await tablesOf(folder, packages)) {
    const table = await readJson<TableFile>(folder, path);
    if (table === undefined) continue;
    const check = Object.hasOwn(functions, table.function) ? functions[table.function] : undefined;
    for (const [index, row] of table.cases.entries()) {
      const outcome = () => check?.(row, table) ?? { leftOut: `we have no counterpart of ${table.function}` };
      cases.push({ name: `${table.source} ${rowName(row, index)}`, check: outcome });
    }
  }
  return cases;
}

async function tablesOf(folder: string, packages: readonly string[]): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const one of packages) {
    for await (const path of glob(join(one, "**/tables/*.json"), { cwd: folder })) paths.push(path);
  }
  return [...new Set(paths)].sort();
}

/** Only to be read by people. */
function rowName(row: object, index: number): string {
  return "name" in row && typeof row.name === "string" ? row.name : `row ${index + 1}`;
}
