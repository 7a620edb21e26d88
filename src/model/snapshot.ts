import type { AuthorizationPolicy } from "#config/kinds/authorization-policy/schema.ts";
import type { ConfigMap } from "#config/kinds/config-map/schema.ts";
import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { EnvoyFilter } from "#config/kinds/envoy-filter/schema.ts";
import type { Gateway } from "#config/kinds/gateway/schema.ts";
import type { Namespace } from "#config/kinds/namespace/schema.ts";
import type { PeerAuthentication } from "#config/kinds/peer-authentication/schema.ts";
import type { ProxyConfigObject } from "#config/kinds/proxy-config/schema.ts";
import type { RequestAuthentication } from "#config/kinds/request-authentication/schema.ts";
import type { Secret } from "#config/kinds/secret/schema.ts";
import type { Sidecar } from "#config/kinds/sidecar/schema.ts";
import type { UnreadablePolicy } from "#config/kinds/unreadable-policy.ts";
import type { VirtualService } from "#config/kinds/virtual-service/schema.ts";
import type { WorkloadGroup } from "#config/kinds/workload-group/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Features } from "./features.ts";
import type { KeySets } from "./key-set.ts";
import type { EndpointSet } from "./service/endpoint.ts";
import type { NetworkGateway } from "./service/network-gateway.ts";
import type { Service, ServiceKey } from "./service/service.ts";
import type { KnownWorkload, WorkloadKey } from "./workload/workload.ts";

/**
 * The whole state of the mesh at one moment. Immutable: an event makes a new snapshot that shares everything the event
 * did not touch, so what changed between two snapshots is found by comparing identities.
 */
export interface Snapshot {
  readonly version: number;
  /** What is private was left out, for proxies that proved no identity. */
  readonly onlyPublic?: true;
  readonly mesh: MeshConfig;
  readonly features: Features;
  /** Sorted by creation time, then namespace and hostname, so that older services win conflicts. */
  readonly services: readonly Service[];
  readonly endpoints: ReadonlyMap<ServiceKey, EndpointSet>;
  /** Workloads by themselves: a proxy may be there before any endpoint tells of it. */
  readonly workloads: ReadonlyMap<WorkloadKey, KnownWorkload>;
  /** Each list sorted by creation time, then namespace and name. */
  readonly virtualServices: readonly ConfigObject<VirtualService>[];
  readonly destinationRules: readonly ConfigObject<DestinationRule>[];
  readonly gateways: readonly ConfigObject<Gateway>[];
  readonly sidecars: readonly ConfigObject<Sidecar>[];
  readonly peerAuthentications: readonly ConfigObject<PeerAuthentication>[];
  readonly authorizationPolicies: readonly ConfigObject<AuthorizationPolicy>[];
  readonly envoyFilters: readonly ConfigObject<EnvoyFilter>[];
  readonly requestAuthentications: readonly ConfigObject<RequestAuthentication>[];
  /** What stands in for security objects that cannot be read; none where these are ignored. */
  readonly unreadablePolicies: readonly ConfigObject<UnreadablePolicy>[];
  /** What is known of namespaces: for injection, and for who may attach to gateways. */
  readonly namespaces: readonly ConfigObject<Namespace>[];
  readonly proxyConfigs: readonly ConfigObject<ProxyConfigObject>[];
  readonly workloadGroups: readonly ConfigObject<WorkloadGroup>[];
  /** Where other networks are reached; none in a mesh of one network. Sorted. */
  readonly networkGateways: readonly NetworkGateway[];
  /** Gateways that are known by a host name, before it is resolved. Sorted. */
  readonly namedGateways: readonly NetworkGateway[];
  /** Keys of token issuers that were fetched. */
  readonly keySets: KeySets;
  /** Certificates and keys, and roots, that gateways and clients may ask for by name. */
  readonly secrets: readonly ConfigObject<Secret>[];
  /** Secrets of further clusters, for the proxies there. */
  readonly clusterSecrets: readonly ClusterSecrets[];
  readonly configMaps: readonly ConfigObject<ConfigMap>[];
}

/** Secrets of one of the further clusters. */
export interface ClusterSecrets {
  readonly clusterId: string;
  readonly secrets: readonly ConfigObject<Secret>[];
}
