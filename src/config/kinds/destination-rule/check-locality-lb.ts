/** Preference of near endpoints. */

import { formatField } from "../../schema/field-path.ts";
import { error, type Problem, warning } from "../../schema/problem.ts";
import { LOCALITY_PARTS } from "../../terms/topology-labels.ts";
import type { LocalityLb, OutlierDetection } from "./schema.ts";

/** Weights by locality, or localities to fall back to. The latter needs outlier detection to notice failures. */
export function* checkLocalityLb(
  setting: LocalityLb | undefined,
  at: string,
  outlier: OutlierDetection | undefined,
): Iterable<Problem> {
  const { distribute = [], failover = [], failoverPriority = [] } = setting ?? {};
  if (distribute.length > 0 && failover.length > 0) {
    yield error(`${at}.failover`, "cannot be set together with distribute");
    return;
  }
  const topology = failoverPriority.find((label) => LOCALITY_PARTS.includes(label));
  if (failover.length > 0 && topology !== undefined) {
    yield error(`${at}.failoverPriority`, `cannot have "${topology}" together with failover`);
    return;
  }
  for (const [i, { to = {} }] of distribute.entries()) yield* checkWeights(to, `${at}.distribute[${i}].to`);
  yield* checkLocalities(
    distribute.map(({ from = "" }) => from),
    `${at}.distribute`,
  );
  if (failover.length + failoverPriority.length > 0 && outlier === undefined) {
    yield warning(at, "has no effect without outlierDetection, which notices failures");
  }
  for (const [i, { from = "", to = "" }] of failover.entries()) {
    if (from === to) yield error(`${at}.failover[${i}]`, "must go to another region");
    if (/[/*]/.test(from + to)) yield error(`${at}.failover[${i}]`, "must name regions, without zones or wildcards");
  }
}

function* checkWeights(to: Readonly<Record<string, number>>, at: string): Iterable<Problem> {
  let total = 0;
  for (const [locality, weight] of Object.entries(to)) {
    if (weight < 1 || weight > 100) yield error(formatField(at, locality), `must be from 1 to 100, not ${weight}`);
    total += weight;
  }
  if (total !== 100) yield error(at, `must have weights that sum up to 100, not ${total}`);
  // A map has no order that could tell which of two counts: sorted, the wider one comes first, and is found to hide the other.
  yield* checkLocalities(Object.keys(to).sort(), at);
}

/**
 * `region/zone/subzone`, the end of which may be left out or `*`. None may cover a later one, which would never count; one
 * with `*` may stand for the rest of those before it.
 */
function* checkLocalities(localities: readonly string[], at: string): Iterable<Problem> {
  const seen = new SeenLocalities();
  for (const locality of localities) {
    const parts = locality.split("/").slice(0, 3);
    const stars = locality.split("*").length - 1;
    if (parts.includes("")) yield error(at, `must not have empty parts in a locality: "${locality}"`);
    else if (stars > 1 || (stars === 1 && !locality.endsWith("*"))) {
      yield error(at, `must have a wildcard at the end of a locality only: "${locality}"`);
    } else if (seen.hide(parts)) {
      yield error(at, `must not have localities that overlap: "${locality}"`);
    }
    seen.add(parts);
  }
}

/** Localities by their beginnings, so that thousands of them cost no more than their number. */
class SeenLocalities {
  /** Whole ones, without a wildcard at their end. */
  readonly #wholes = new Set<string>();
  readonly #beginnings = new Set<string>();

  add(parts: readonly string[]): void {
    this.#wholes.add(pathOf(parts.at(-1) === "*" ? parts.slice(0, -1) : parts));
    for (const [i] of parts.entries()) this.#beginnings.add(pathOf(parts.slice(0, i + 1)));
  }

  /** Whether what is there covers the locality, or it covers that without saying so by a wildcard. */
  hide(parts: readonly string[]): boolean {
    const isCovered = [[], ...parts.map((_, i) => parts.slice(0, i + 1))].some((begin) =>
      this.#wholes.has(pathOf(begin)),
    );
    return isCovered || this.#beginnings.has(pathOf(parts));
  }
}

function pathOf(parts: readonly string[]): string {
  return parts.join("/");
}
