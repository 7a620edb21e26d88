/** Which webhooks of a cluster would inject into a pod, and why the others would not. */
import { type LabelExpression, type LabelSelector, matchesSelector } from "#model/labels/label-selector.ts";
import { INJECT, REVISION } from "../pod/names.ts";
import type { Metadata } from "../pod/pod.ts";
import { parseStatus } from "../reinjection.ts";

/** A MutatingWebhookConfiguration, as far as it matters. */
export interface WebhookConfiguration {
  readonly metadata: { readonly name: string; readonly labels?: Labels };
  readonly webhooks?: readonly MutatingWebhook[];
}

/** One webhook, and whom it is asked about. */
export interface MutatingWebhook {
  readonly name: string;
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
}

/** What one configuration does to a pod. */
export interface WebhookMatch {
  readonly name: string;
  readonly revision: string;
  readonly injected: boolean;
  readonly reason: string;
}

type Labels = Readonly<Record<string, string>>;

const LEGACY = "istio-injection";
/** What a deactivated configuration has in place of its selectors. */
const NEVER_MATCHES = "istio.io/deactivated";

/** All configurations of Istio, by name. */
export function matchWebhooks(
  configurations: readonly WebhookConfiguration[],
  pod: Labels,
  namespace: Labels,
): readonly WebhookMatch[] {
  return configurations
    .filter(({ webhooks = [] }) => webhooks.some(({ name }) => name.endsWith("istio.io")))
    .map(({ metadata, webhooks = [] }) => ({
      name: metadata.name,
      revision: metadata.labels?.[REVISION] ?? "",
      ...(firstReason(webhooks, pod, namespace) ?? { injected: false, reason: noMatch(webhooks) }),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The revision that injected a pod; empty for a pod that has no proxy. */
export function injectedRevision({ annotations = {} }: Metadata): string {
  return parseStatus(annotations["sidecar.istio.io/status"] ?? "")?.revision ?? "";
}

/** True for a pod that says it wants no proxy; its label counts more than its annotation. */
export function refusesInjection({ labels = {}, annotations = {} }: Metadata): boolean {
  return (Object.hasOwn(labels, INJECT) ? labels[INJECT] : annotations[INJECT])?.toLowerCase() === "false";
}

type Reason = Pick<WebhookMatch, "injected" | "reason">;

/** Of the first webhook that has something to say. */
function firstReason(webhooks: readonly MutatingWebhook[], pod: Labels, namespace: Labels): Reason | undefined {
  for (const { namespaceSelector = {}, objectSelector = {} } of webhooks) {
    const byNamespace = matchesSelector(namespaceSelector, namespace) === true;
    const byPod = matchesSelector(objectSelector, pod) === true;
    const reason =
      byNamespace && byPod
        ? matchReason(labelIn(namespaceSelector, namespace), labelIn(objectSelector, pod))
        : byNamespace
          ? refusal("Pod", preventing(objectSelector, pod))
          : byPod
            ? namespaceRefusal(namespace)
            : undefined;
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function matchReason(namespaceLabel: string | undefined, podLabel: string | undefined): Reason | undefined {
  if (namespaceLabel !== undefined && podLabel !== undefined)
    return { injected: true, reason: `Namespace label ${namespaceLabel} matches, and pod label ${podLabel} matches` };
  if (namespaceLabel !== undefined) {
    const all = namespaceLabel.includes("kubernetes.io/metadata.name")
      ? " (Automatic injection is enabled in all namespaces)."
      : "";
    return { injected: true, reason: `Namespace label ${namespaceLabel} matches${all}` };
  }
  return podLabel === undefined ? undefined : { injected: true, reason: `Pod label ${podLabel} matches` };
}

function namespaceRefusal(namespace: Labels): Reason | undefined {
  const value = namespace[LEGACY];
  return value === undefined || value === "enabled" ? undefined : refusal("Namespace", `${LEGACY}=${value}`);
}

function refusal(whose: string, label: string | undefined): Reason | undefined {
  return label === undefined
    ? undefined
    : { injected: false, reason: `${whose} has ${label} label, preventing injection` };
}

/** The label by which a selector takes something. */
function labelIn({ matchExpressions = [] }: LabelSelector, labels: Labels): string | undefined {
  const found = matchExpressions.find(
    ({ key = "", operator = "" }) => ["In", "NotIn"].includes(operator) && Object.hasOwn(labels, key),
  );
  return found && labelText(found, labels);
}

/** The label by which a selector leaves something out. */
function preventing({ matchExpressions = [] }: LabelSelector, labels: Labels): string | undefined {
  const found = matchExpressions.find(({ key = "", operator, values = [] }) => {
    const value = labels[key];
    return value !== undefined && (operator === "DoesNotExist" || (operator === "NotIn" && values.includes(value)));
  });
  return found && labelText(found, labels);
}

function labelText({ key = "" }: LabelExpression, labels: Labels): string {
  return `${key}=${labels[key]}`;
}

function noMatch(webhooks: readonly MutatingWebhook[]): string {
  const isNever = (selector: LabelSelector = {}) => Object.hasOwn(selector.matchLabels ?? {}, NEVER_MATCHES);
  if (webhooks.some((webhook) => isNever(webhook.namespaceSelector) && isNever(webhook.objectSelector)))
    return "The injection webhook is deactivated, and will never match labels.";
  const wanted = (selectors: readonly (LabelSelector | undefined)[]) =>
    selectors
      .flatMap((selector) => selector?.matchExpressions ?? [])
      .filter(({ operator }) => operator === "In")
      .flatMap(({ key, values = [] }) => values.map((value) => `${key}=${value}`))
      .join(", ");
  const namespaces = wanted(webhooks.map(({ namespaceSelector }) => namespaceSelector));
  return `No matching namespace labels (${namespaces}) or pod labels (${wanted(webhooks.map(({ objectSelector }) => objectSelector))})`;
}
