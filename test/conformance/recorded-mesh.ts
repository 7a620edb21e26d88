/** The input of recorded cases to a snapshot: objects, Kubernetes YAML, and dumps of Istio's own model of services. */

import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import { meshConfigSchema } from "#config/mesh/mesh-schema.ts";
import { parse } from "#config/schema/parse.ts";
import { parseProtocol } from "#config/terms/protocol.ts";
import { readDocuments } from "#lib/yaml/read.ts";
import { DEFAULT_FEATURES, type Features } from "#model/features.ts";
import type { Endpoint, EndpointSet } from "#model/service/endpoint.ts";
import { type Resolution, type Service, type ServiceKey, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { type KubernetesObject, kubernetesMesh } from "./kubernetes-mesh.ts";

export interface RecordedInput {
  readonly configs?: readonly KubernetesObject[];
  readonly kubernetesYAML?: string;
  /** Dumps of Kubernetes objects by cluster. */
  readonly kubernetesObjects?: Readonly<Record<string, readonly object[]>>;
  readonly kubernetesYAMLByCluster?: Readonly<Record<string, string>>;
  /** The cluster of the control plane, where there are several. */
  readonly defaultCluster?: string;
  readonly meshConfig?: object;
  readonly istiodEnv?: Readonly<Record<string, unknown>>;
  readonly services?: readonly ServiceDump[];
  readonly instances?: readonly InstanceDump[];
}

interface PortDump {
  readonly Name: string;
  readonly Port: number;
  readonly Protocol?: string;
}

/** A service of Istio's own model. */
export interface ServiceDump {
  readonly Hostname: string;
  readonly DefaultAddress?: string;
  /** Addresses by cluster. */
  readonly ClusterVIPs?: { readonly Addresses?: Readonly<Record<string, readonly string[]>> | null };
  readonly Ports?: readonly PortDump[];
  readonly Resolution?: number;
  readonly CreationTime?: string;
  readonly MeshExternal?: boolean;
  readonly Attributes?: {
    readonly Name?: string;
    readonly Namespace?: string;
    readonly ServiceRegistry?: string;
    readonly Labels?: Readonly<Record<string, string>>;
    readonly ExportTo?: readonly string[];
    readonly Aliases?: readonly { readonly Hostname: string; readonly Namespace: string }[];
  };
}

interface InstanceDump {
  readonly Service: ServiceDump;
  readonly Endpoint: {
    readonly Addresses: readonly string[];
    readonly EndpointPort: number;
    readonly ServicePortName: string;
    readonly LbWeight?: number;
    readonly Labels?: Readonly<Record<string, string>>;
    readonly Locality?: { readonly Label?: string; readonly ClusterID?: string };
    readonly TLSMode?: string;
  };
}

const RESOLUTIONS: readonly Resolution[] = ["static", "dns", "passthrough", "dns-round-robin", "alias"];
const PASSTHROUGH = RESOLUTIONS.indexOf("passthrough");
const UNSPECIFIED = "0.0.0.0";

/** A complete mesh config says nothing where a field has the value of its type. */
const UNSET: Partial<MeshConfig> = {
  dnsRefreshRate: 0,
  enableTracing: false,
  rootNamespace: "",
  trustDomain: "",
  proxyListenPort: 0,
  proxyInboundListenPort: 0,
  outboundTrafficPolicy: { mode: "REGISTRY_ONLY" },
  localityLbSetting: { enabled: false },
  defaultConfig: {},
  extensionProviders: [],
};

/** What of the control plane's environment has a counterpart here; other switches belong to parts that do not exist yet. */
const SWITCHES: Readonly<Record<string, (value: string) => Partial<Features>>> = {
  // For sidecars and gateways that are no part of ambient it changes nothing.
  PILOT_ENABLE_AMBIENT: () => ({}),
  PILOT_ENABLE_IP_AUTOALLOCATE: (value) => ({ autoAllocate: value === "true" }),
  ISTIO_ENABLE_IPV4_OUTBOUND_LISTENER_FOR_IPV6_CLUSTERS: (value) => ({ ipv4BesideIpv6: value === "true" }),
  ISTIO_DUAL_STACK: (value) => ({ dualStack: value === "true" }),
  PILOT_TRACE_SAMPLING: (value) => ({ traceSampling: Number(value) }),
  ENABLE_TLS_ON_SIDECAR_INGRESS: (value) => ({ tlsOnSidecarIngress: value === "true" }),
  PILOT_ALLOW_SIDECAR_SERVICE_INBOUND_LISTENER_MERGE: (value) => ({ mergeSidecarIngress: value === "true" }),
};

/** A snapshot, or why the input cannot make one yet. */
export function recordedMesh(input: RecordedInput): Snapshot | { readonly leftOut: string } {
  const features: Partial<Features>[] = [];
  for (const [name, value] of Object.entries(input.istiodEnv ?? {})) {
    const read = SWITCHES[name];
    if (read === undefined) return { leftOut: `${name} has no counterpart yet` };
    features.push(read(String(value)));
  }
  // Recorded settings are complete, and some have values that no user could give.
  const given = parse(meshConfigSchema, input.meshConfig ?? {}, "").value ?? {};
  const mesh = { ...DEFAULT_MESH_CONFIG, ...(input.meshConfig && UNSET), ...(given as Partial<MeshConfig>) };
  const { defaultCluster = DEFAULT_FEATURES.clusterId, kubernetesYAMLByCluster = {} } = input;
  const { [defaultCluster]: own = input.kubernetesYAML ?? "", ...others } = kubernetesYAMLByCluster;
  const documents = documentsOf(own);
  const remotes = new Map(Object.entries(others).map(([cluster, yaml]) => [cluster, documentsOf(yaml)]));
  const dumped = Object.values(input.kubernetesObjects ?? {})
    .flat()
    .map(kubernetesObject);
  const configs = (input.configs ?? []).map((one) => ({ ...one, metadata: { namespace: "", ...one.metadata } }));
  const objects = [...configs, ...documents, ...dumped];
  const all = { ...DEFAULT_FEATURES, clusterId: defaultCluster, ...Object.assign({}, ...features) };
  // Hosts of Kubernetes services end in the cluster's domain, those of Ingresses too; short names in configuration were
  // completed without one.
  const services = kubernetesMesh({ objects, remotes, mesh, features: all });
  if ("leftOut" in services) return services;
  const domain = objects.some(({ kind }) => kind === "Ingress") ? all.domain : "";
  const rest = kubernetesMesh({ objects, remotes, mesh, features: { ...all, domain } });
  if ("leftOut" in rest) return rest;
  return withDumps({ ...rest, services: services.services, endpoints: services.endpoints }, input);
}

function documentsOf(yaml: string): readonly KubernetesObject[] {
  return readDocuments(yaml).map(({ value }) => value as KubernetesObject);
}

function kubernetesObject(dump: object): KubernetesObject {
  const { $type = "", ...object } = dump as KubernetesObject & { readonly $type?: string };
  const kind = $type.slice($type.lastIndexOf(".") + 1);
  return { ...object, kind, apiVersion: kind === "EndpointSlice" ? "discovery.k8s.io/v1" : "v1" };
}

function withDumps(snapshot: Snapshot, { services = [], instances = [] }: RecordedInput): Snapshot {
  const dumped = services.map(dumpedService);
  const endpoints = new Map<ServiceKey, EndpointSet>(snapshot.endpoints);
  for (const { Service: service, Endpoint: endpoint } of instances) {
    const key = serviceKey(dumpedService(service));
    const known = endpoints.get(key)?.endpoints ?? [];
    const made = endpointOf(endpoint);
    // Where connections go to the address that was called, only an endpoint that says so takes no mutual TLS.
    const isSilent = service.Resolution === PASSTHROUGH && endpoint.TLSMode === undefined;
    const tlsMode = isSilent ? "istio" : made.tlsMode;
    endpoints.set(key, { endpoints: [...known, { ...made, tlsMode }], identities: [] });
  }
  return { ...snapshot, services: [...snapshot.services, ...dumped], endpoints };
}

/** Where the services of a dumped workload are: tests of Istio put them in front of workloads of any namespace. */
export function homeOf({ instances = [] }: RecordedInput, addresses: readonly string[]): string | undefined {
  const own = instances.filter(({ Endpoint: { Addresses } }) => Addresses.some((one) => addresses.includes(one)));
  const namespaces = new Set(own.map(({ Service: { Attributes } }) => Attributes?.Namespace ?? ""));
  return namespaces.size === 1 ? [...namespaces][0] : undefined;
}

/** The service of a dump. */
export function dumpedService(dump: ServiceDump): Service {
  const {
    Name: name = "",
    Namespace: namespace = "",
    ServiceRegistry: registry,
    Labels: labels = {},
  } = dump.Attributes ?? {};
  const { DefaultAddress: address = "" } = dump;
  return {
    hostname: dump.Hostname,
    name,
    namespace,
    registry: registry === "Kubernetes" ? "Kubernetes" : "External",
    addresses: address === UNSPECIFIED || address === "" ? [] : [address],
    autoAddress: undefined,
    ports: (dump.Ports ?? []).map(({ Name, Port, Protocol = "" }) => ({
      name: Name,
      port: Port,
      protocol: parseProtocol(Protocol),
    })),
    resolution: RESOLUTIONS[dump.Resolution ?? 0] ?? "static",
    meshExternal: dump.MeshExternal === true,
    headless: false,
    labels,
    exportTo: dump.Attributes?.ExportTo ?? [],
    subjectAltNames: [],
    createdAt: Date.parse(dump.CreationTime ?? "") || 0,
    ...(dump.Attributes?.Aliases && {
      aliases: dump.Attributes.Aliases.map(({ Hostname: hostname, Namespace }) => ({ hostname, namespace: Namespace })),
    }),
  };
}

function endpointOf(dump: InstanceDump["Endpoint"]): Endpoint {
  return {
    address: dump.Addresses[0] ?? "",
    ports: { [dump.ServicePortName]: dump.EndpointPort },
    labels: dump.Labels ?? {},
    namespace: "",
    workloadName: "",
    serviceAccount: "",
    tlsMode: dump.TLSMode === "istio" ? "istio" : "disabled",
    network: "",
    locality: dump.Locality?.Label ?? "",
    clusterId: dump.Locality?.ClusterID ?? "",
    weight: dump.LbWeight ?? 0,
    health: "unknown",
  };
}
