/** What the control plane follows in the API server. */
import { configMapKind } from "#config/kinds/config-map/kind.ts";
import { type Kind, resourceTypeOf } from "#config/kinds/kind.ts";
import { knownKinds } from "#config/kinds/kinds.ts";
import { podKind } from "#config/kinds/pod/kind.ts";
import { secretKind } from "#config/kinds/secret/kind.ts";
import { workloadEntryKind } from "#config/kinds/workload-entry/kind.ts";
import type { ResourceType } from "#lib/kubernetes/resource-types.ts";

export interface FollowedType extends ResourceType {
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  /** The only one whose objects count. */
  readonly namespace?: string | undefined;
  /** Comes with the mesh: a cluster without it is a cluster without such objects. */
  readonly isCustom: boolean;
  /** Nobody waits for it where it may not be read. */
  readonly isOptional?: true;
}

/** Secrets that hold no credentials of gateways, and may be many. */
const NOT_FOR_GATEWAYS = "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token";
/** Evicted pods stay until somebody removes them, and may be many. */
const NOT_FAILED = "status.phase!=Failed";
/** Each namespace has these. */
const NOT_ROOTS = "metadata.name!=istio-ca-root-cert,metadata.name!=istio-ca-crl,metadata.name!=kube-root-ca.crt";

const LIMITS: ReadonlyMap<Kind, Pick<FollowedType, "fieldSelector">> = new Map<
  Kind,
  Pick<FollowedType, "fieldSelector">
>([
  [podKind, { fieldSelector: NOT_FAILED }],
  [secretKind, { fieldSelector: NOT_FOR_GATEWAYS }],
  [configMapKind, { fieldSelector: NOT_ROOTS }],
]);

/** All of them. Custom kinds are read in the version that the API server can turn every other one into. */
export const FOLLOWED_TYPES: readonly FollowedType[] = knownKinds().map((kind) => ({
  ...followed(kind),
  ...LIMITS.get(kind),
}));

/** Istio's kinds: how the mesh is configured. */
export const CUSTOM_KINDS: ReadonlySet<string> = new Set(
  FOLLOWED_TYPES.filter(({ isCustom }) => isCustom).map(({ kind }) => kind),
);

/** What of them counts, where that is not everything. */
export interface TypeLimits {
  /** Whether a kind that comes with the mesh is left out, by its name such as `gateways.networking.istio.io`. */
  readonly ignores?: (resource: string) => boolean;
  /** The only namespace that counts. */
  readonly namespace?: string | undefined;
}

/** The types within limits. */
export function limited(types: readonly FollowedType[], { ignores, namespace }: TypeLimits): readonly FollowedType[] {
  const counting = types.filter(({ isCustom, plural, group }) => !isCustom || ignores?.(`${plural}.${group}`) !== true);
  if (namespace === undefined) return counting;
  return counting.map((type) => (type.namespaced ? { namespace, ...type } : type));
}

/** What of the control plane's own namespace counts in any case: the mesh config, and which clusters there are. */
export function systemTypes(namespace: string): readonly FollowedType[] {
  return [
    { ...followed(configMapKind), fieldSelector: NOT_ROOTS, namespace },
    { ...followed(secretKind), labelSelector: `${CLUSTER_LABEL}=true`, namespace },
  ];
}

/** Of Secrets with kubeconfigs of further clusters. */
export const CLUSTER_LABEL = "istio/multiCluster";

/** A ConfigMap. */
export interface MapPlace {
  readonly namespace: string;
  readonly name: string;
}

/** What counts of clusters beside our own: who runs there, by what name it is trusted, but not how the mesh is configured. */
export function remoteTypes({ namespace, name }: MapPlace, withEntries: boolean): readonly FollowedType[] {
  const fieldSelector = `metadata.name=${name}`;
  return [
    ...FOLLOWED_TYPES.filter(({ kind }) => ["Service", "Pod", "Node", "Namespace", "EndpointSlice"].includes(kind)),
    ...(withEntries ? [{ ...followed(workloadEntryKind), isOptional: true } as const] : []),
    { ...followed(secretKind), fieldSelector: NOT_FOR_GATEWAYS, isOptional: true },
    { ...followed(configMapKind), fieldSelector, namespace, isOptional: true },
  ];
}

function followed(kind: Kind): FollowedType {
  return { ...resourceTypeOf(kind), isCustom: kind.crd !== undefined };
}
