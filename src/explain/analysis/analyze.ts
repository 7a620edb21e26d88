/** All that Istio's analysers would say about the objects of a mesh, as far as it is about Istio's own kinds. */

import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { objectKey } from "#config/schema/config-object.ts";
import type { Steps } from "#lib/async/steps.ts";
import type { ObjectProblem } from "#model/ports.ts";
import { certificateFindings, credentialFindings, portFindings, rivalFindings } from "./gateways.ts";
import { type MeshObjects, meshObjects } from "./mesh-objects.ts";
import { byWeight, type Finding, type Findings } from "./message.ts";
import { addressFindings, checkFinding, deprecatedFindings, patchFindings } from "./single-objects.ts";
import {
  claimFindings,
  delegateFindings,
  destinationFindings,
  gatewayFindings,
  hostFindings,
  subsetFindings,
} from "./virtual-services.ts";
import { destinationRuleFindings, policyFindings, sidecarFindings } from "./workload-objects.ts";

/** What is analysed. */
export interface AnalysisInput {
  readonly objects: readonly ConfigObject[];
  /** What checks of single objects say. */
  readonly problems: readonly ObjectProblem[];
  readonly mesh: MeshConfig;
}

const ANALYSERS: readonly ((mesh: MeshObjects) => Findings)[] = [
  addressFindings,
  certificateFindings,
  claimFindings,
  credentialFindings,
  delegateFindings,
  deprecatedFindings,
  destinationFindings,
  destinationRuleFindings,
  gatewayFindings,
  hostFindings,
  patchFindings,
  policyFindings,
  portFindings,
  rivalFindings,
  sidecarFindings,
  subsetFindings,
];
/** Codes that an object does not want to hear of; `*` for all. */
const SUPPRESS = "galley.istio.io/analyze-suppress";

/** Findings by object (`kind/namespace/name`), none twice, the weightiest first; in steps. */
export function* analysisSteps(input: AnalysisInput): Steps<ReadonlyMap<string, readonly Finding[]>> {
  const mesh = meshObjects(input.objects, input.mesh);
  const found = input.problems.filter(({ object }) => object !== "").map(checkFinding);
  for (const analyser of ANALYSERS) {
    for (const finding of analyser(mesh)) {
      if (finding !== undefined) found.push(finding);
      yield;
    }
  }
  const suppressed = new Map(
    input.objects.flatMap((object) => {
      const codes = object.metadata.annotations[SUPPRESS];
      return codes === undefined ? [] : [[objectKey(object), new Set(codes.split(",").map((code) => code.trim()))]];
    }),
  );
  const wanted = found.filter(({ object, code }) => {
    const codes = suppressed.get(object);
    return codes === undefined || !(codes.has(code) || codes.has("*"));
  });
  const distinct = new Map(wanted.map((finding) => [`${finding.object} ${finding.code} ${finding.text}`, finding]));
  return Map.groupBy([...distinct.values()].sort(byWeight), ({ object }) => object);
}
