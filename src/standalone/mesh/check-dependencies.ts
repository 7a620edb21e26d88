/** What is wrong with who waits for whom. */
import type { Problem } from "#config/schema/problem.ts";
import { findWorkload } from "./members.ts";
import { memberKey } from "./mesh.ts";
import type { WorkloadFields } from "./mesh-schema.ts";

/** Problems of `after`: names that nobody has, and circles, in which nothing would ever start. */
export function checkDependencies(workloads: readonly WorkloadFields[]): Problem[] {
  const problems: Problem[] = [];
  const report = (field: string, message: string) => problems.push({ field, message, severity: "error" });
  const waits = new Map<string, readonly string[]>();
  for (const [i, workload] of workloads.entries()) {
    const namespace = workload.namespace ?? "default";
    const found = (workload.after ?? []).map((name, n) => {
      const key = findWorkload(name, namespace, workloads);
      if (key === undefined) report(`spec.workloads[${i}].after[${n}]`, unknown(name, workloads));
      return key;
    });
    waits.set(
      memberKey({ name: workload.name, namespace }),
      found.filter((key) => key !== undefined),
    );
  }
  for (const [i, { name, namespace = "default" }] of workloads.entries()) {
    const circle = circleFrom(memberKey({ name, namespace }), waits);
    if (circle !== undefined) report(`spec.workloads[${i}].after`, `leads back to itself: ${circle.join(" -> ")}`);
  }
  return problems;
}

function unknown(name: string, workloads: readonly WorkloadFields[]): string {
  return `names "${name}", which is no workload: there are ${workloads.map((workload) => workload.name).join(", ")}`;
}

/** The way from a workload back to itself; undefined when there is none. */
function circleFrom(start: string, waits: ReadonlyMap<string, readonly string[]>): readonly string[] | undefined {
  const seen = new Set<string>();
  const search = (way: readonly string[]): readonly string[] | undefined => {
    for (const next of waits.get(way.at(-1) ?? "") ?? []) {
      if (next === start) return [...way, next];
      if (seen.has(next)) continue;
      seen.add(next);
      const found = search([...way, next]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return search([start]);
}
