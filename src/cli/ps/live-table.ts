/** The members of a one-machine mesh with what changes while one looks. */

import type { Style } from "#lib/print/style.ts";
import { formatTable } from "#lib/print/table.ts";
import { type MemberRow, readiness } from "./mesh-table.ts";

export interface LiveRow extends MemberRow {
  /** Times in milliseconds since 1970; undefined when there is no proxy, or it does not tell. */
  readonly certificateEnds: number | undefined;
  readonly lastPush: number | undefined;
  /** Configuration that the proxy refused; undefined as above. */
  readonly rejected: number | undefined;
}

export function formatLive(rows: readonly LiveRow[], style: Style, now: number): string {
  const head = ["WORKLOAD", "NAMESPACE", "ADDRESS", "RESTARTS", "CERTIFICATE", "LAST PUSH", "NACKS", "READY"];
  const lines = rows.map((row) => [
    row.name,
    row.namespace,
    row.address,
    String(row.restarts),
    row.certificateEnds === undefined ? "-" : `${duration(row.certificateEnds - now)} left`,
    row.lastPush === undefined ? "-" : `${duration(now - row.lastPush)} ago`,
    row.rejected === undefined ? "-" : row.rejected === 0 ? "0" : style.bad(String(row.rejected)),
    readiness(row, style),
  ]);
  return formatTable([head, ...lines]);
}

const UNITS = [
  ["d", 86_400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
] as const;

/** The two largest units that matter: `23h59m`, `12s`. */
export function duration(ms: number): string {
  let rest = Math.max(0, Math.floor(ms / 1000));
  const parts: string[] = [];
  for (const [unit, seconds] of UNITS) {
    const count = Math.floor(rest / seconds);
    rest -= count * seconds;
    if (count > 0 || parts.length > 0 || unit === "s") parts.push(`${count}${unit}`);
  }
  return parts.slice(0, 2).join("");
}
