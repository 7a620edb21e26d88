/** What people are told of security objects that cannot be read. */

import { ANY_NAMESPACE, type UnreadablePolicy } from "#config/kinds/unreadable-policy.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import type { ObjectProblem } from "#model/ports.ts";

/** One problem for each of them. */
export function denialProblems(
  unreadable: readonly ConfigObject<UnreadablePolicy>[],
  { denies, rootNamespace }: { readonly denies: boolean; readonly rootNamespace: string },
): readonly ObjectProblem[] {
  return unreadable.map((policy) => {
    const effect = denies
      ? `it denies ${WHAT[policy.kind] ?? "all traffic"} to ${whom(policy, rootNamespace)} until it is repaired or deleted`
      : "it is ignored, as --on-unreadable-policy=ignore demands";
    const message = `cannot be read and has no earlier version: ${effect}`;
    return { object: objectKey(policy), field: "", message, severity: "error", origin: policy.origin };
  });
}

const WHAT: Readonly<Record<string, string>> = {
  AuthorizationPolicy: "all traffic",
  PeerAuthentication: "plain text",
  RequestAuthentication: "all HTTP requests",
};

function whom({ metadata: { namespace }, spec }: ConfigObject<UnreadablePolicy>, rootNamespace: string): string {
  const isWide = namespace === ANY_NAMESPACE || namespace === rootNamespace;
  const where = isWide ? "the mesh" : `namespace ${namespace}`;
  const labels = Object.entries(spec.selector?.matchLabels ?? {}).map(([name, value]) => `${name}=${value}`);
  if (labels.length > 0) return `workloads with ${labels.sort().join(",")} in ${where}`;
  const targets = [...(spec.targetRefs ?? []), ...(spec.targetRef === undefined ? [] : [spec.targetRef])];
  if (targets.length > 0) return `${targets.map(({ kind, name }) => `${kind} ${name}`).join(", ")} in ${where}`;
  return `all workloads of ${where}`;
}
