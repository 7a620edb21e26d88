/** What the control plane follows in the API server. */
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

/** All of them. Custom kinds are read in the version that the API server can turn every other one into. */
export const FOLLOWED_TYPES: readonly FollowedType[] = [
  core("Service", "services"),
  { ...core("Pod", "pods"), fieldSelector: NOT_FAILED },
  { ...core("Node", "nodes"), namespaced: false },
  { ...core("Namespace", "namespaces"), namespaced: false },
  { ...core("Secret", "secrets"), fieldSelector: NOT_FOR_GATEWAYS },
  { ...core("ConfigMap", "configmaps"), fieldSelector: NOT_ROOTS },
  { ...core("EndpointSlice", "endpointslices"), group: "discovery.k8s.io" },
  { ...core("Ingress", "ingresses"), group: "networking.k8s.io" },
  { ...core("IngressClass", "ingressclasses"), group: "networking.k8s.io", namespaced: false },
  networking("VirtualService", "virtualservices", "v1"),
  networking("DestinationRule", "destinationrules", "v1"),
  networking("Gateway", "gateways", "v1"),
  networking("ServiceEntry", "serviceentries", "v1"),
  networking("WorkloadEntry", "workloadentries", "v1"),
  networking("WorkloadGroup", "workloadgroups", "v1"),
  networking("Sidecar", "sidecars", "v1"),
  networking("EnvoyFilter", "envoyfilters", "v1alpha3"),
  networking("ProxyConfig", "proxyconfigs", "v1beta1"),
  security("AuthorizationPolicy", "authorizationpolicies"),
  security("PeerAuthentication", "peerauthentications"),
  security("RequestAuthentication", "requestauthentications"),
];

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
    { ...core("ConfigMap", "configmaps"), fieldSelector: NOT_ROOTS, namespace },
    { ...core("Secret", "secrets"), labelSelector: `${CLUSTER_LABEL}=true`, namespace },
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
    ...(withEntries ? [{ ...networking("WorkloadEntry", "workloadentries", "v1"), isOptional: true } as const] : []),
    { ...core("Secret", "secrets"), fieldSelector: NOT_FOR_GATEWAYS, isOptional: true },
    { ...core("ConfigMap", "configmaps"), fieldSelector, namespace, isOptional: true },
  ];
}

function core(kind: string, plural: string): FollowedType {
  return { group: "", version: "v1", kind, plural, namespaced: true, isCustom: false };
}

function networking(kind: string, plural: string, version: string): FollowedType {
  return { group: "networking.istio.io", version, kind, plural, namespaced: true, isCustom: true };
}

function security(kind: string, plural: string): FollowedType {
  return { group: "security.istio.io", version: "v1", kind, plural, namespaced: true, isCustom: true };
}
