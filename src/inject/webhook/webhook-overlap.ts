/** Pods that two webhooks of injection would both change: a second proxy breaks the first. */
import { type LabelSelector, matchesSelector } from "#model/labels/label-selector.ts";
import { INJECT, REVISION } from "../pod/names.ts";
import type { WebhookConfiguration } from "./webhook-match.ts";

type Labels = Readonly<Record<string, string>>;

const LEGACY = "istio-injection";

/** Webhooks, as `configuration/webhook`, that would be asked about the same pods as those of the named configuration. */
export function overlappingWebhooks(
  configurations: readonly WebhookConfiguration[],
  name: string,
): readonly (readonly string[])[] {
  const revisions = [...new Set(configurations.flatMap(revisionsOf))];
  const found = new Map<string, readonly string[]>();
  for (const namespace of labelSets(LEGACY, ["enabled", "disabled"], revisions)) {
    for (const pod of labelSets(INJECT, ["true", "false"], revisions)) {
      const matching = configurations.flatMap(({ metadata, webhooks = [] }) =>
        webhooks
          .filter((webhook) => matches(webhook.namespaceSelector, namespace) && matches(webhook.objectSelector, pod))
          .map((webhook) => `${metadata.name}/${webhook.name}`),
      );
      for (const own of matching.filter((one) => one.startsWith(`${name}/`))) {
        const others = matching.filter((one) => one !== own).sort();
        if (others.length > 0) found.set(others.join(), others);
      }
    }
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, others]) => others);
}

/** Everything that namespaces, or pods, may say about injection. */
function labelSets(key: string, values: readonly string[], revisions: readonly string[]): readonly Labels[] {
  const plain: readonly Labels[] = [{}, ...values.map((value) => ({ [key]: value }))];
  return [...plain, ...revisions.flatMap((revision) => plain.map((labels) => ({ ...labels, [REVISION]: revision })))];
}

function revisionsOf({ metadata, webhooks = [] }: WebhookConfiguration): readonly string[] {
  const own = metadata.labels?.[REVISION];
  const selectors = webhooks.flatMap(({ namespaceSelector, objectSelector }) => [namespaceSelector, objectSelector]);
  const selected = selectors.flatMap((selector) => {
    const label = selector?.matchLabels?.[REVISION];
    const expressions = (selector?.matchExpressions ?? []).filter(({ key }) => key === REVISION);
    return [...(label === undefined ? [] : [label]), ...expressions.flatMap(({ values = [] }) => values)];
  });
  return own === undefined ? selected : [own, ...selected];
}

function matches(selector: LabelSelector | undefined, labels: Labels): boolean {
  return matchesSelector(selector ?? {}, labels) === true;
}
