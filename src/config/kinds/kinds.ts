/** Which kinds of objects there are, and what each of them is read with. */

import { checkMetadata } from "../checks/metadata.ts";
import type { ConfigObject } from "../schema/config-object.ts";
import { independentOf } from "../schema/independent.ts";
import type { Schema } from "../schema/message.ts";
import { isUnknownField, parse, parseSpec } from "../schema/parse.ts";
import { asError, type Parsed, type Problem } from "../schema/problem.ts";
import { checkAuthorizationPolicy } from "./authorization-policy/check.ts";
import { authorizationPolicySchema } from "./authorization-policy/schema.ts";
import { configMapSchema } from "./config-map/schema.ts";
import { checkDestinationRule } from "./destination-rule/check.ts";
import { destinationRuleSchema } from "./destination-rule/schema.ts";
import { checkEndpointSlice } from "./endpoint-slice/check.ts";
import { endpointSliceSchema } from "./endpoint-slice/schema.ts";
import { checkEnvoyFilter } from "./envoy-filter/check.ts";
import { envoyFilterSchema } from "./envoy-filter/schema.ts";
import { checkGateway } from "./gateway/check.ts";
import { gatewaySchema } from "./gateway/schema.ts";
import { ingressSchema } from "./ingress/schema.ts";
import { ingressClassSchema } from "./ingress-class/schema.ts";
import { namespaceSchema } from "./namespace/schema.ts";
import { nodeSchema, nodeStatusSchema } from "./node/schema.ts";
import { checkPeerAuthentication } from "./peer-authentication/check.ts";
import { peerAuthenticationSchema } from "./peer-authentication/schema.ts";
import { podSchema, podStatusSchema } from "./pod/schema.ts";
import { checkProxyConfigObject } from "./proxy-config/check.ts";
import { proxyConfigObjectSchema } from "./proxy-config/schema.ts";
import { checkRequestAuthentication } from "./request-authentication/check.ts";
import { requestAuthenticationSchema } from "./request-authentication/schema.ts";
import { checkSecret } from "./secret/check.ts";
import { secretSchema } from "./secret/schema.ts";
import { checkService } from "./service/check.ts";
import { serviceSchema, serviceStatusSchema } from "./service/schema.ts";
import { checkServiceEntry } from "./service-entry/check.ts";
import { serviceEntrySchema, serviceEntryStatusSchema } from "./service-entry/schema.ts";
import { checkSidecar } from "./sidecar/check.ts";
import { sidecarSchema } from "./sidecar/schema.ts";
import { checkVirtualService } from "./virtual-service/check.ts";
import { virtualServiceSchema } from "./virtual-service/schema.ts";
import { checkWorkloadEntry } from "./workload-entry/check.ts";
import { workloadEntrySchema, workloadEntryStatusSchema } from "./workload-entry/schema.ts";
import { checkWorkloadGroup } from "./workload-group/check.ts";
import { workloadGroupSchema } from "./workload-group/schema.ts";

/** A kind the mesh reads. */
export interface Kind {
  readonly versions: readonly string[];
  /** The only one of them that API servers and istiod have, where they do not have all. */
  readonly servedAs?: string;
  /** Of its spec, or of its content. */
  readonly schema: Schema<unknown>;
  /** Its content where that stands beside the metadata, not in a spec. */
  readonly content?: readonly string[];
  /** The schema has but the fields that the mesh reads. */
  readonly isPartial?: true;
  /** Reads and checks the spec of an object of this kind. */
  readonly read: (spec: unknown, head: Omit<ConfigObject, "spec">) => Parsed<ConfigObject>;
}

/** What the mesh makes of a kind: reads it, knows it but does nothing yet, leaves it to others, or has never heard of it. */
export type Standing = { readonly kind: Kind } | "not-yet" | "not-ours" | "unknown";

/** A kind by its name and group; the group of Kubernetes' own kinds is empty. */
export interface NamedKind extends Kind {
  readonly group: string;
  readonly name: string;
}

/** All kinds that are read, by group and name. */
export function knownKinds(): readonly NamedKind[] {
  return Object.entries(KINDS).map(([key, kind]) => {
    const slash = key.indexOf("/");
    return { ...kind, group: key.slice(0, slash), name: key.slice(slash + 1) };
  });
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
    .map(({ name, ...known }) => ({
      kind: name,
      apiVersion: [known.group, newestVersion(known)].filter(Boolean).join("/"),
    }));
}

/** How an object with this `apiVersion` and `kind` is treated. */
export function standingOf(apiVersion: string, kind: string): Standing {
  const { group, version } = partsOf(apiVersion);
  if (group === OUR_GROUP) return "not-ours";
  const known = KINDS[`${group}/${kind}`];
  if (known !== undefined) return known.versions.includes(version) ? { kind: known } : "unknown";
  return NOT_YET[group]?.includes(kind) === true ? "not-yet" : "unknown";
}

/**
 * The `apiVersion` to read an object under. Versions of a kind differ by their names alone, so one that is not known yet is
 * read as the newest that is.
 */
export function readVersion(apiVersion: string, kind: string): string {
  const { group, version } = partsOf(apiVersion);
  const known = KINDS[`${group}/${kind}`];
  return known === undefined || known.versions.includes(version) ? apiVersion : `${group}/${newestVersion(known)}`;
}

function newestVersion({ servedAs, versions: [newest = ""] }: Kind): string {
  return servedAs ?? newest;
}

function partsOf(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.lastIndexOf("/");
  return { group: apiVersion.slice(0, Math.max(slash, 0)), version: apiVersion.slice(slash + 1) };
}

/** Settings of the one-machine mesh: they are beside the configuration, but no part of it. */
const OUR_GROUP = "mizzen.dev";
const NETWORKING = ["v1", "v1beta1", "v1alpha3"];
const SECURITY = ["v1", "v1beta1"];

const KINDS: Readonly<Record<string, Kind>> = {
  "/ConfigMap": content(kind(["v1"], configMapSchema, unchecked), "data", "binaryData", "immutable"),
  "/Namespace": partial(kind(["v1"], namespaceSchema, unchecked)),
  "/Node": withStatus(partial(kind(["v1"], nodeSchema, unchecked)), nodeStatusSchema),
  "/Pod": withStatus(partial(kind(["v1"], podSchema, unchecked)), podStatusSchema),
  "/Secret": content(kind(["v1"], secretSchema, checkSecret), "type", "data", "stringData", "immutable"),
  "/Service": withStatus(kind(["v1"], serviceSchema, checkService), serviceStatusSchema),
  "discovery.k8s.io/EndpointSlice": content(
    kind(["v1"], endpointSliceSchema, checkEndpointSlice),
    "addressType",
    "endpoints",
    "ports",
  ),
  "networking.istio.io/DestinationRule": kind(NETWORKING, destinationRuleSchema, checkDestinationRule),
  "networking.istio.io/EnvoyFilter": servedAs("v1alpha3", kind(NETWORKING, envoyFilterSchema, checkEnvoyFilter)),
  "networking.istio.io/Gateway": kind(NETWORKING, gatewaySchema, checkGateway),
  "networking.istio.io/ServiceEntry": withStatus(
    kind(NETWORKING, serviceEntrySchema, checkServiceEntry),
    serviceEntryStatusSchema,
  ),
  "networking.istio.io/Sidecar": kind(NETWORKING, sidecarSchema, checkSidecar),
  "networking.istio.io/ProxyConfig": servedAs(
    "v1beta1",
    kind(NETWORKING, proxyConfigObjectSchema, checkProxyConfigObject),
  ),
  "networking.istio.io/VirtualService": kind(NETWORKING, virtualServiceSchema, checkVirtualService),
  "networking.istio.io/WorkloadEntry": withStatus(
    kind(NETWORKING, workloadEntrySchema, checkWorkloadEntry),
    workloadEntryStatusSchema,
  ),
  "networking.istio.io/WorkloadGroup": kind(NETWORKING, workloadGroupSchema, checkWorkloadGroup),
  "networking.k8s.io/Ingress": partial(kind(["v1"], ingressSchema, unchecked)),
  "networking.k8s.io/IngressClass": partial(kind(["v1"], ingressClassSchema, unchecked)),
  "security.istio.io/AuthorizationPolicy": strict(kind(SECURITY, authorizationPolicySchema, checkAuthorizationPolicy)),
  "security.istio.io/PeerAuthentication": strict(kind(SECURITY, peerAuthenticationSchema, checkPeerAuthentication)),
  "security.istio.io/RequestAuthentication": strict(
    kind(SECURITY, requestAuthenticationSchema, checkRequestAuthentication),
  ),
};

/** Kinds that have no effect yet. */
const NOT_YET: Readonly<Record<string, readonly string[]>> = {
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
  "extensions.istio.io": ["WasmPlugin"],
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
  "telemetry.istio.io": ["Telemetry"],
};

/** Of a kind that its API server alone checks. */
function unchecked(): readonly Problem[] {
  return [];
}

function kind<Spec>(
  versions: readonly string[],
  schema: Schema<Spec>,
  check: (object: ConfigObject<Spec>) => Iterable<Problem>,
): Kind {
  const read: Kind["read"] = (rawSpec, { status: _, ...head }) => {
    const { value, problems, salvaged } = parseSpec(schema, rawSpec);
    const checked = (object: ConfigObject<Spec>) => [...checkMetadata(head.metadata, head.kind), ...check(object)];
    if (value === undefined) {
      const more = salvaged === undefined ? [] : checked({ ...head, spec: salvaged.value });
      return { value: undefined, problems: [...problems, ...independentOf(more, problems, salvaged?.undecided)] };
    }
    const object = { ...head, spec: value };
    const all = [...problems, ...checked(object)];
    return { value: all.some(({ severity }) => severity === "error") ? undefined : object, problems: all };
  };
  return { versions, schema, read };
}

function servedAs(version: string, kind: Kind): Kind {
  return { ...kind, servedAs: version };
}

/** A kind whose status counts. Nobody writes one by hand, so what is odd in it is passed over, not reported. */
function withStatus({ read, ...kind }: Kind, schema: Schema<unknown>): Kind {
  return {
    ...kind,
    read: (raw, head) => {
      const { value, problems } = read(raw, head);
      const status = head.status === undefined ? undefined : parse(schema, head.status, "status").value;
      return { value: value && status !== undefined ? { ...value, status } : value, problems };
    },
  };
}

/** A kind in which an unknown field is an error: a policy without the field could allow what its author wants to forbid. */
function strict({ read, ...kind }: Kind): Kind {
  return {
    ...kind,
    read: (raw, head) => {
      const { value, problems } = read(raw, head);
      const known = problems.map((one) => (isUnknownField(one) ? asError(one) : one));
      return { value: known.some(({ severity }) => severity === "error") ? undefined : value, problems: known };
    },
  };
}

/** A kind of Kubernetes that has far more fields than the mesh reads: the others are passed over. */
function partial({ read, ...kind }: Kind): Kind {
  return {
    ...kind,
    isPartial: true,
    read: (raw, head) => {
      const { value, problems } = read(raw, head);
      return { value, problems: problems.filter(({ severity }) => severity === "error") };
    },
  };
}

/** A kind without a spec: fields are named as they stand in the object. */
function content({ versions, schema, read }: Kind, ...fields: readonly string[]): Kind {
  return {
    versions,
    schema,
    content: fields,
    read: (raw, head) => {
      const { value, problems } = read(raw, head);
      return { value, problems: problems.map((one) => ({ ...one, field: one.field.replace(/^spec\.?/, "") })) };
    },
  };
}
