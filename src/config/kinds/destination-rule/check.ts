import { checkExportTo } from "../../checks/export-to.ts";
import { checkLabels, checkSelector } from "../../checks/labels.ts";
import { checkDnsLabel, checkHost } from "../../checks/names.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem } from "../../schema/problem.ts";
import { checkSubsetExpansion } from "../check-expansion.ts";
import { checkTrafficPolicy } from "./check-traffic-policy.ts";
import type { DestinationRule } from "./schema.ts";

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
