/** What a policy applies to: workloads by labels, or objects by name. */

import { checkSelector } from "../checks/labels.ts";
import { error, type Problem } from "../schema/problem.ts";
import type { TargetReference, WorkloadSelector } from "./schema.ts";

/** Kinds that a policy may name, by group. */
const TARGETS: Readonly<Record<string, readonly string[]>> = {
  "": ["Service"],
  core: ["Service"],
  "networking.istio.io": ["ServiceEntry"],
  "gateway.networking.k8s.io": ["Gateway", "GatewayClass"],
};

/** The fields by which a policy says what it applies to. */
export interface Attachment {
  readonly selector?: WorkloadSelector | undefined;
  readonly targetRef?: TargetReference | undefined;
  readonly targetRefs?: readonly TargetReference[] | undefined;
}

/** At most one way to say what the policy applies to, and that one well-formed. */
export function* checkAttachment({ selector, targetRef, targetRefs = [] }: Attachment): Iterable<Problem> {
  const ways = [selector !== undefined, targetRef !== undefined, targetRefs.length > 0].filter(Boolean);
  if (ways.length > 1) yield error("spec", "can have only one of selector, targetRef and targetRefs");
  if (selector !== undefined) yield* checkSelector(selector.matchLabels, "spec.selector.matchLabels");
  if (targetRef !== undefined) yield* checkTarget(targetRef, "spec.targetRef");
  for (const [i, target] of targetRefs.entries()) yield* checkTarget(target, `spec.targetRefs[${i}]`);
}

function* checkTarget({ group = "", kind, name, namespace = "" }: TargetReference, at: string): Iterable<Problem> {
  if (name === "") yield error(`${at}.name`, "is required");
  if (namespace !== "")
    yield error(`${at}.namespace`, "must not be set: only objects of the same namespace are allowed");
  if (!(Object.hasOwn(TARGETS, group) && TARGETS[group]?.includes(kind) === true)) {
    const allowed = Object.entries(TARGETS).flatMap(([of, kinds]) => kinds.map((one) => `${of || "core"}/${one}`));
    yield error(at, `must name one of ${[...new Set(allowed)].join(", ")}, not ${group}/${kind}`);
  }
}
