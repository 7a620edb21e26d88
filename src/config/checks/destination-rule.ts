import type { ConfigObject } from "../config-object.ts";
import type { DestinationRule } from "../kinds/destination-rule.ts";
import { error, type Problem } from "../problem.ts";
import { checkSubsetExpansion } from "./expansion.ts";
import { checkExportTo } from "./export-to.ts";
import { checkLabels, checkSelector } from "./labels.ts";
import { checkDnsLabel, checkHost } from "./names.ts";
import { checkTrafficPolicy } from "./traffic-policy.ts";

/** Checks a DestinationRule. */
export function* checkDestinationRule({ spec, metadata }: ConfigObject<DestinationRule>): Iterable<Problem> {
  const { namespace } = metadata;
  yield* checkHost(spec.host, "spec.host");
  yield* checkTrafficPolicy(spec.trafficPolicy, "spec.trafficPolicy", namespace);
  const names = new Set<string>();
  for (const [i, { name, labels, trafficPolicy }] of (spec.subsets ?? []).entries()) {
    const at = `spec.subsets[${i}]`;
    if (names.has(name)) yield error(`${at}.name`, `is there twice: "${name}"`);
    names.add(name);
    yield* checkDnsLabel(name, `${at}.name`);
    yield* checkLabels(labels, `${at}.labels`);
    yield* checkTrafficPolicy(trafficPolicy, `${at}.trafficPolicy`, namespace);
  }
  yield* checkSubsetExpansion(spec);
  yield* checkExportTo({
    exportTo: spec.exportTo,
    namespace,
    ownNamespaceOnly: spec.workloadSelector !== undefined,
  });
  if (spec.workloadSelector !== undefined) {
    yield* checkSelector(spec.workloadSelector.matchLabels, "spec.workloadSelector.matchLabels");
  }
}
