/** Results as a table for people. */
import type { GroupResult } from "./harness.ts";

const HEADINGS = ["group", "cases", "passed", "failed", "left out"] as const;

export function formatTable(results: readonly GroupResult[]): string {
  const rows = results.map(row);
  const total = HEADINGS.slice(1).map((_, column) => rows.reduce((sum, cells) => sum + Number(cells[column + 1]), 0));
  const all = [HEADINGS, ...rows, ["all", ...total.map(String)]];
  const widths = HEADINGS.map((_, column) => Math.max(...all.map((cells) => (cells[column] ?? "").length)));
  const lines = all.map((cells) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  "),
  );
  return `${lines.join("\n")}\n`;
}

function row({ name, cases, passed, failures, leftOut }: GroupResult): readonly string[] {
  const left = [...leftOut.values()].reduce((sum, count) => sum + count, 0);
  return [name, cases, passed, failures.length, left].map(String);
}

/** Why cases were left out, most frequent first. */
export function formatLeftOut(results: readonly GroupResult[]): string {
  const lines = results.flatMap(({ name, leftOut }) =>
    [...leftOut].sort(([, a], [, b]) => b - a).map(([reason, count]) => `  ${name}: ${count} x ${reason}\n`),
  );
  return lines.length === 0 ? "" : `left out:\n${lines.join("")}`;
}

/** Names of failed cases, with their differences when these are wanted. */
export function formatFailures(results: readonly GroupResult[], verbose: boolean): string {
  return results
    .flatMap(({ name, failures }) =>
      failures.map((failure) => {
        const details = verbose ? `${failure.differs().replace(/^/gm, "    ")}\n` : "";
        return `failed: ${name}: ${failure.case}\n${details}`;
      }),
    )
    .join("");
}
