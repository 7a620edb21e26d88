/** Which problems remain interesting when some fields could not be read. */

import { parentsOf } from "./field-path.ts";
import type { Problem } from "./problem.ts";

/** Nobody reads more, and telling them apart has its cost. */
const MOST_PROBLEMS = 1_000;

/**
 * The errors found in a salvaged value that do not merely follow from an unread field: those at such a field, above or
 * below it are left out, and so are those beside a choice that could not be read.
 */
export function independentOf(
  found: readonly Problem[],
  unread: readonly Problem[],
  undecided: ReadonlySet<string> = new Set(),
): readonly Problem[] {
  const errors = unread.filter(({ severity }) => severity === "error").slice(0, MOST_PROBLEMS);
  const wrong = new Set(errors.map(({ field }) => field));
  const above = new Set([...wrong].flatMap(parentsOf));
  return found.slice(0, MOST_PROBLEMS).filter(({ field, severity }) => {
    if (severity === "warning") return false;
    const parents = parentsOf(field);
    if (wrong.has(field) || above.has(field) || undecided.has(parents[0] ?? "")) return false;
    return !parents.some((parent) => wrong.has(parent));
  });
}
