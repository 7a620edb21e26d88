import type { ConfigObject } from "#config/schema/config-object.ts";
import { compareText } from "#lib/text/compare-text.ts";
import { apiForm } from "./api-form.ts";
import { inScope, type Scope } from "./scope.ts";
import { timeText } from "./time-text.ts";

/** Group and version under which a kind is shown; the networking group holds all others. */
const API_VERSIONS: Readonly<Record<string, string>> = {
  ConfigMap: "v1",
  Secret: "v1",
  Service: "v1",
  AuthorizationPolicy: "security.istio.io/v1",
  PeerAuthentication: "security.istio.io/v1",
  RequestAuthentication: "security.istio.io/v1",
  EnvoyFilter: "networking.istio.io/v1alpha3",
};
const NETWORKING = "networking.istio.io/v1";

/** Nobody looks at secrets, whatever else they may see. */
const HIDDEN: ReadonlySet<string> = new Set(["Secret"]);

/** All objects as last accepted, in the form of the API, by kind and then by name. */
export function configz(objects: readonly ConfigObject[], scope: Scope): readonly object[] {
  return objects
    .filter(({ kind, metadata }) => !HIDDEN.has(kind) && inScope(scope, metadata.namespace))
    .toSorted((a, b) => compareText(sortKey(a), sortKey(b)))
    .map(({ kind, metadata, spec }) => ({
      kind,
      apiVersion: API_VERSIONS[kind] ?? NETWORKING,
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
