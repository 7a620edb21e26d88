import { error, type Problem } from "../schema/problem.ts";
import { isDnsLabel } from "./names.ts";

/** Whom an object is visible to, and what of that makes sense for its kind. */
export interface ExportToInput {
  readonly exportTo: readonly string[] | undefined;
  /** Namespace of the object, which `.` stands for. */
  readonly namespace: string;
  /** `~`, visible to no one, has a meaning for services only. */
  readonly nobodyAllowed?: boolean;
  /** An object that selects workloads is read only in its own namespace. */
  readonly ownNamespaceOnly?: boolean;
}

/** Namespaces, `.` for the own one, `*` for all. */
export function* checkExportTo(input: ExportToInput): Iterable<Problem> {
  const { exportTo = [], namespace, nobodyAllowed = false, ownNamespaceOnly = false } = input;
  const seen = new Set<string>();
  for (const [i, entry] of exportTo.entries()) {
    const target = entry === "." ? namespace : entry;
    const known = target === "*" || isDnsLabel(target) || (nobodyAllowed && target === "~");
    if (seen.has(target)) yield error(`spec.exportTo[${i}]`, `names "${target}" again`);
    else if (!known) yield error(`spec.exportTo[${i}]`, `must be a namespace, "." or "*", not "${entry}"`);
    else seen.add(target);
  }
  for (const alone of ["*", "~"]) {
    if (seen.has(alone) && exportTo.length > 1) yield error("spec.exportTo", `cannot have others beside "${alone}"`);
  }
  if (ownNamespaceOnly && seen.size > 0 && !(seen.size === 1 && seen.has(namespace))) {
    yield error("spec.exportTo", `must be "." alone when there is a workloadSelector`);
  }
}
