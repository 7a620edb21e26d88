/** Whether a pod gets a proxy. */
import { isEmptySelector, type LabelSelector, matchesSelector } from "#model/labels/label-selector.ts";
import { INJECT } from "./names.ts";
import type { Pod } from "./pod.ts";

/** What holds for pods that say nothing themselves. */
export interface InjectionPolicy {
  /** `enabled` or `disabled`; anything else is a mistake, and nothing is injected. */
  readonly policy: string;
  readonly neverInjectSelector: readonly LabelSelector[];
  readonly alwaysInjectSelector: readonly LabelSelector[];
}

/** A verdict, and what a person who asks why is told. */
export interface Decision {
  readonly inject: boolean;
  readonly reason: string;
}

/** Namespaces of the cluster itself. */
export const IGNORED_NAMESPACES: ReadonlySet<string> = new Set([
  "kube-system",
  "kube-public",
  "kube-node-lease",
  "local-path-storage",
]);

/**
 * Decides in this order: what must never have a proxy, what the pod says (a label counts more than an annotation), whom
 * selectors name (never before always), and at last the policy.
 */
export function decideInjection({ metadata, spec }: Pod, policy: InjectionPolicy): Decision {
  const { labels = {}, namespace = "" } = metadata;
  if (spec.hostNetwork) return no("it uses the network of its node");
  if (IGNORED_NAMESPACES.has(namespace)) return no(`namespace "${namespace}" belongs to the cluster`);
  if (policy.policy !== "enabled" && policy.policy !== "disabled")
    return no(`policy "${policy.policy}" is neither enabled nor disabled`);
  const own = ownWord(metadata);
  if (own === "true") return { inject: true, reason: `it has ${INJECT}: true` };
  if (own === "false") return no(`it has ${INJECT}: false`);
  const matching = (selectors: readonly LabelSelector[]) =>
    selectors.some((selector) => !isEmptySelector(selector) && matchesSelector(selector, labels) === true);
  if (matching(policy.neverInjectSelector)) return no("neverInjectSelector matches its labels");
  if (matching(policy.alwaysInjectSelector)) return { inject: true, reason: "alwaysInjectSelector matches its labels" };
  return { inject: policy.policy === "enabled", reason: `the policy is ${policy.policy}` };
}

/** What a pod says of its own injection, if that is a word which says nothing. */
export function unclearWord({ metadata }: Pod): string | undefined {
  const own = ownWord(metadata);
  return own === undefined || ["true", "false", ""].includes(own) ? undefined : own;
}

function ownWord({ labels = {}, annotations = {} }: Pod["metadata"]): string | undefined {
  return Object.hasOwn(labels, INJECT) ? labels[INJECT] : annotations[INJECT];
}

function no(reason: string): Decision {
  return { inject: false, reason };
}
