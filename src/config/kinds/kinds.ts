/** The list of kinds, and lookups in it. */

import { apiVersionOf } from "#lib/kubernetes/resource-types.ts";
import { authorizationPolicyKind } from "./authorization-policy/kind.ts";
import { configMapKind } from "./config-map/kind.ts";
import { destinationRuleKind } from "./destination-rule/kind.ts";
import { endpointSliceKind } from "./endpoint-slice/kind.ts";
import { envoyFilterKind } from "./envoy-filter/kind.ts";
import { gatewayKind } from "./gateway/kind.ts";
import { ingressKind } from "./ingress/kind.ts";
import { ingressClassKind } from "./ingress-class/kind.ts";
import { type Kind, resourceTypeOf } from "./kind.ts";
import { namespaceKind } from "./namespace/kind.ts";
import { nodeKind } from "./node/kind.ts";
import { peerAuthenticationKind } from "./peer-authentication/kind.ts";
import { podKind } from "./pod/kind.ts";
import { proxyConfigKind } from "./proxy-config/kind.ts";
import { requestAuthenticationKind } from "./request-authentication/kind.ts";
import { secretKind } from "./secret/kind.ts";
import { serviceKind } from "./service/kind.ts";
import { serviceEntryKind } from "./service-entry/kind.ts";
import { sidecarKind } from "./sidecar/kind.ts";
import { telemetryKind } from "./telemetry/kind.ts";
import { virtualServiceKind } from "./virtual-service/kind.ts";
import { wasmPluginKind } from "./wasm-plugin/kind.ts";
import { workloadEntryKind } from "./workload-entry/kind.ts";
import { workloadGroupKind } from "./workload-group/kind.ts";

/** All kinds that come with the mesh or that it reads from Kubernetes. */
export const KINDS: readonly Kind[] = [
  configMapKind,
  namespaceKind,
  nodeKind,
  podKind,
  secretKind,
  serviceKind,
  endpointSliceKind,
  destinationRuleKind,
  envoyFilterKind,
  gatewayKind,
  serviceEntryKind,
  sidecarKind,
  proxyConfigKind,
  virtualServiceKind,
  workloadEntryKind,
  workloadGroupKind,
  ingressKind,
  ingressClassKind,
  authorizationPolicyKind,
  peerAuthenticationKind,
  requestAuthenticationKind,
  wasmPluginKind,
  telemetryKind,
];

/** What the mesh makes of a kind: reads it, knows it but does nothing yet, leaves it to others, or has never heard of it. */
export type Standing = { readonly kind: Kind } | "not-yet" | "not-ours" | "unknown";

const BY_NAME: ReadonlyMap<string, Kind> = new Map(KINDS.map((kind) => [`${kind.group}/${kind.name}`, kind]));

/** The kinds whose objects have an effect. */
export function knownKinds(): readonly Kind[] {
  return KINDS.filter(({ hasNoEffect }) => hasNoEffect !== true);
}

/**
 * What somebody who wrote an unknown kind may have meant: one of that name, in whatever letters, each in its newest version.
 * Groups of others have kinds of the same names.
 */
export function kindsMeant(
  apiVersion: string,
  kind: string,
): readonly { readonly apiVersion: string; readonly kind: string }[] {
  const { group } = partsOf(apiVersion);
  const kinds = knownKinds();
  if (!group.endsWith(".istio.io") && !kinds.some((known) => known.group === group)) return [];
  return kinds
    .filter(({ name }) => name.toLowerCase() === kind.toLowerCase())
    .map((known) => ({ kind: known.name, apiVersion: apiVersionOf(resourceTypeOf(known)) }));
}

/** How an object with this `apiVersion` and `kind` is treated. */
export function standingOf(apiVersion: string, kind: string): Standing {
  const { group, version } = partsOf(apiVersion);
  if (group === OUR_GROUP) return "not-ours";
  const known = BY_NAME.get(`${group}/${kind}`);
  if (known === undefined) return NOT_READ.get(group)?.includes(kind) === true ? "not-yet" : "unknown";
  if (known.hasNoEffect) return "not-yet";
  return known.versions.includes(version) ? { kind: known } : "unknown";
}

/**
 * The `apiVersion` to read an object under. Versions of a kind differ by their names alone, so one that is not known yet is
 * read as the newest that is.
 */
export function readVersion(apiVersion: string, kind: string): string {
  const { group, version } = partsOf(apiVersion);
  const known = BY_NAME.get(`${group}/${kind}`);
  return known === undefined || known.versions.includes(version) ? apiVersion : apiVersionOf(resourceTypeOf(known));
}

function partsOf(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.lastIndexOf("/");
  return { group: apiVersion.slice(0, Math.max(slash, 0)), version: apiVersion.slice(slash + 1) };
}

/** Settings of the one-machine mesh: they are beside the configuration, but no part of it. */
const OUR_GROUP = "mizzen.dev";

/** Kinds of others that appear beside the configuration of a mesh, and that the mesh does not read. */
const NOT_READ: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    "": [
      "Endpoints",
      "PersistentVolume",
      "PersistentVolumeClaim",
      "ReplicationController",
      "ResourceQuota",
      "ServiceAccount",
    ],
    "admissionregistration.k8s.io": ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
    "apiextensions.k8s.io": ["CustomResourceDefinition"],
    apps: ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
    autoscaling: ["HorizontalPodAutoscaler"],
    batch: ["CronJob", "Job"],
    "gateway.networking.k8s.io": [
      "BackendTLSPolicy",
      "GRPCRoute",
      "Gateway",
      "GatewayClass",
      "HTTPRoute",
      "ReferenceGrant",
      "TCPRoute",
      "TLSRoute",
      "UDPRoute",
    ],
    "gateway.networking.x-k8s.io": ["XBackendTrafficPolicy", "XListenerSet"],
    "inference.networking.k8s.io": ["InferencePool"],
    "networking.k8s.io": ["NetworkPolicy"],
    policy: ["PodDisruptionBudget"],
    "rbac.authorization.k8s.io": ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    "storage.k8s.io": ["StorageClass"],
  }),
);
