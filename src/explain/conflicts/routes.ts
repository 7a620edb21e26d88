/** Conflicts among the objects about hosts: VirtualServices, DestinationRules, services. */

import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import { gatewaysOf, MESH_GATEWAY } from "#config/kinds/virtual-service/gateway-name.ts";
import type { VirtualService } from "#config/kinds/virtual-service/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { completeHost } from "#config/terms/host.ts";
import { defaultExportTo } from "#config/terms/visibility.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { Claims, type Search } from "./conflict.ts";

/** Hosts that several VirtualServices have for sidecars. At gateways their routes are joined, which is no conflict. */
export function* hostConflicts({ virtualServices, mesh, features }: Snapshot): Search {
  const claims = new Claims<ConfigObject<VirtualService>>();
  const exportTo = defaultExportTo(mesh.defaultVirtualServiceExportTo);
  for (const object of virtualServices) {
    yield undefined;
    const { namespace } = object.metadata;
    if (!gatewaysOf(object.spec, namespace).includes(MESH_GATEWAY)) continue;
    for (const host of object.spec.hosts ?? []) {
      const winner = claims.claim(
        completeHost(host, namespace, features.domain),
        object,
        (other) => other !== object && haveCommonAudience(other, object, exportTo),
      );
      if (winner === undefined) continue;
      yield {
        metric: "pilot_vservice_dup_domain",
        what: `host "${host}" for sidecars`,
        winner: objectKey(winner),
        loser: objectKey(object),
        loserNamespace: namespace,
        outcome: "its routes for this host are not used where both are seen",
      };
    }
  }
}

/** Subsets that several DestinationRules of a namespace give to one host. */
export function* subsetConflicts({ destinationRules, mesh, features }: Snapshot): Search {
  const claims = new Claims<ConfigObject<DestinationRule>>();
  for (const object of destinationRules) {
    yield undefined;
    const { namespace } = object.metadata;
    const host = completeHost(object.spec.host, namespace, features.domain);
    const selector = JSON.stringify(Object.entries(object.spec.workloadSelector?.matchLabels ?? {}).sort());
    for (const { name } of object.spec.subsets ?? []) {
      const winner = claims.claim(`${namespace} ${host} ${selector} ${name}`, object, (other) =>
        haveCommonAudience(other, object, mesh.defaultDestinationRuleExportTo),
      );
      if (winner === undefined) continue;
      yield {
        metric: "pilot_destrule_subsets",
        what: `subset "${name}" of host "${object.spec.host}"`,
        winner: objectKey(winner),
        loser: objectKey(object),
        loserNamespace: namespace,
        outcome: "this subset is not used",
      };
    }
  }
}

type Exported = ConfigObject<{ readonly exportTo?: readonly string[] | undefined }>;

function haveCommonAudience(a: Exported, b: Exported, fallback: readonly string[]): boolean {
  const [one, other] = [audience(a, fallback), audience(b, fallback)];
  if (one.size === 0 || other.size === 0) return false;
  return one.has("*") || other.has("*") || !one.isDisjointFrom(other);
}

function audience({ metadata, spec }: Exported, fallback: readonly string[]): ReadonlySet<string> {
  const targets = spec.exportTo === undefined || spec.exportTo.length === 0 ? fallback : spec.exportTo;
  if (targets.includes("~")) return new Set();
  return new Set(targets.map((target) => (target === "." ? metadata.namespace : target)));
}
