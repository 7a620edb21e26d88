import { resourceTypeOf } from "#config/kinds/kind.ts";
import { knownKinds } from "#config/kinds/kinds.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { apiVersionOf } from "#lib/kubernetes/resource-types.ts";
import { compareText } from "#lib/text/compare-text.ts";
import { apiForm } from "./api-form.ts";
import { inScope, type Scope } from "./scope.ts";
import { timeText } from "./time-text.ts";

/** Group and version in which objects of each kind are shown. */
const API_VERSIONS: ReadonlyMap<string, string> = new Map(
  knownKinds().map((kind) => [kind.name, apiVersionOf(resourceTypeOf(kind))]),
);

/** Nobody looks at secrets, whatever else they may see. */
const HIDDEN: ReadonlySet<string> = new Set(["Secret"]);

/** All objects as last accepted, in the form of the API, by kind and then by name. */
export function configz(objects: readonly ConfigObject[], scope: Scope): readonly object[] {
  return objects
    .filter(({ kind, metadata }) => !HIDDEN.has(kind) && inScope(scope, metadata.namespace))
    .toSorted((a, b) => compareText(sortKey(a), sortKey(b)))
    .map(({ kind, metadata, spec }) => ({
      kind,
      apiVersion: API_VERSIONS.get(kind),
      metadata: { name: metadata.name, namespace: metadata.namespace, ...nonEmpty(metadata) },
      spec: apiForm(spec),
    }));
}

function sortKey({ kind, metadata }: ConfigObject): string {
  return `${kind}/${metadata.namespace}/${metadata.name}`;
}

function nonEmpty({ labels, annotations, createdAt }: ConfigObject["metadata"]): object {
  return {
    ...(createdAt > 0 && { creationTimestamp: timeText(createdAt) }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}
