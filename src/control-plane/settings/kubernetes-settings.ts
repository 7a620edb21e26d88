/** What the environment says of how the API server is read, and what is written there. */
import type { TypeLimits } from "#sources/kubernetes/followed-types.ts";
import type { DiscoveryValues } from "./environment.ts";

export interface KubernetesSettings {
  /** What is left out of what is read. */
  readonly limits: TypeLimits;
  /** A ConfigMap with what that of the mesh config leaves out; undefined for none. */
  readonly sharedMeshConfig: string | undefined;
  /** Otherwise there is one replica, which need not be elected. */
  readonly elects: boolean;
  /** Of the ConfigMaps that every namespace has. */
  readonly rootMap: string;
  readonly revocationMap: string;
  /** Whether the roots are kept up to date in configurations of webhooks. */
  readonly patches: { readonly injection: boolean; readonly validation: boolean };
}

/** Reads it. */
export function kubernetesSettings(env: DiscoveryValues): KubernetesSettings {
  return {
    limits: {
      ignores: ignoredResources(env.PILOT_IGNORE_RESOURCES, env.PILOT_INCLUDE_RESOURCES),
      namespace: env.ISTIO_WATCH_NAMESPACE || undefined,
    },
    sharedMeshConfig: env.SHARED_MESH_CONFIG || undefined,
    elects: env.ENABLE_LEADER_ELECTION,
    rootMap: env.PILOT_CA_CERT_CONFIGMAP,
    revocationMap: env.PILOT_CRL_CONFIGMAP,
    // Only whether there is a name counts, as for Istio: which configurations are ours is told by their labels.
    patches: {
      injection: env.INJECTION_WEBHOOK_CONFIG_NAME !== "" && env.INJECT_ENABLED,
      validation: env.VALIDATION_WEBHOOK_CONFIG_NAME !== "",
    },
  };
}

/** Names of resources, or ends of names after `*.`; what is to be included stays. */
function ignoredResources(ignored: readonly string[], included: readonly string[]): (resource: string) => boolean {
  const isIn = (list: readonly string[], resource: string) =>
    list.some((item) => (item.startsWith("*.") ? resource.endsWith(item.slice(2)) : resource === item));
  return (resource) => isIn(ignored, resource) && !isIn(included, resource);
}
