/** Services and endpoints to the table of names that the agent's DNS proxy answers from. */
import { fromBinary } from "@bufbuild/protobuf";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Endpoint, EndpointSet } from "#model/service/endpoint.ts";
import type { Protocol, Resolution, Service, ServiceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { planNameTable } from "#translate/plan.ts";
import { viewsOf } from "#translate/views/views.ts";
import { compareJson } from "../compare.ts";
import { encodeRecipe } from "../generate.ts";
import { type Case, type Group, type Outcome, readJson } from "../harness.ts";
import { formatResource, messageType, RESOURCE_TYPES } from "../resources.ts";

interface NameTableCase {
  readonly name: string;
  readonly services: readonly ServiceDump[];
  readonly endpointsByServiceAndPort: Readonly<Record<ServiceKey, Readonly<Record<string, readonly EndpointDump[]>>>>;
  readonly multiclusterHeadless: boolean;
  readonly mesh: { readonly rootNamespace: string };
  readonly proxy: {
    readonly Type: MeshProxy["type"];
    readonly IPAddresses: readonly string[];
    readonly DNSDomain: string;
    readonly Metadata: { readonly ClusterID?: string };
  };
  readonly expectedNameTable: unknown;
}

interface ServiceDump {
  readonly Hostname: string;
  readonly DefaultAddress: string;
  /** Addresses by cluster. */
  readonly ClusterVIPs?: { readonly Addresses?: Readonly<Record<string, readonly string[]>> | null };
  readonly Ports: readonly { readonly Name: string; readonly Port: number; readonly Protocol: Protocol }[];
  readonly Resolution?: number;
  readonly MeshExternal?: boolean;
  readonly Attributes: {
    readonly Name: string;
    readonly Namespace: string;
    readonly ServiceRegistry: Service["registry"];
    readonly PublishNotReadyAddresses?: boolean;
  };
}

interface EndpointDump {
  readonly Addresses: readonly string[];
  readonly EndpointPort: number;
  readonly ServicePortName: string;
  readonly HealthStatus: number;
  readonly HostName?: string;
  readonly SubDomain?: string;
  readonly Network?: string;
  readonly Locality?: { readonly ClusterID?: string };
}

const RESOLUTIONS: readonly Resolution[] = ["static", "dns", "passthrough", "dns-round-robin", "alias"];
const HEALTH: readonly Endpoint["health"][] = ["healthy", "healthy", "unhealthy", "draining", "draining"];
const UNSPECIFIED = "0.0.0.0";

export const nameTable: Group = {
  name: "nds name table",
  cases: async (folder) => {
    const file = await readJson<{ readonly cases: readonly NameTableCase[] }>(folder, "pkg/dns/server/cases.json");
    return (file?.cases ?? []).map((one): Case => ({ name: one.name, check: () => check(one) }));
  },
};

function check(one: NameTableCase): Outcome {
  const snapshot = snapshotOf(one);
  const table = planNameTable(snapshot, viewsOf(snapshot, proxyOf(one)).names);
  const type = messageType(RESOURCE_TYPES.nameTables ?? "");
  return compareJson(formatResource(type, fromBinary(type, encodeRecipe(table))), one.expectedNameTable);
}

function snapshotOf({
  services,
  endpointsByServiceAndPort,
  mesh,
  proxy,
  multiclusterHeadless,
}: NameTableCase): Snapshot {
  const endpoints = Object.entries(endpointsByServiceAndPort).map(([key, ports]): [ServiceKey, EndpointSet] => {
    const all = Object.values(ports).flat();
    return [key as ServiceKey, { endpoints: all.map((endpoint) => endpointOf(key, endpoint)), identities: [] }];
  });
  return {
    version: 1,
    mesh: { ...DEFAULT_MESH_CONFIG, rootNamespace: mesh.rootNamespace },
    features: { ...DEFAULT_FEATURES, multiclusterHeadless },
    unreadablePolicies: [],
    services: services.map((service) => serviceOf(service, proxy.Metadata.ClusterID ?? "")),
    endpoints: new Map(endpoints),
    workloads: new Map(),
    virtualServices: [],
    destinationRules: [],
    gateways: [],
    sidecars: [],
    peerAuthentications: [],
    authorizationPolicies: [],
    envoyFilters: [],
    requestAuthentications: [],
    networkGateways: [],
    namedGateways: [],
    clusterSecrets: [],
    namespaces: [],
    proxyConfigs: [],
    workloadGroups: [],
    secrets: [],
    configMaps: [],
    keySets: new Map(),
  };
}

function serviceOf(dump: ServiceDump, clusterId: string): Service {
  const { Name: name, Namespace: namespace, ServiceRegistry: registry } = dump.Attributes;
  const resolution = RESOLUTIONS[dump.Resolution ?? 0] ?? "static";
  const own = dump.DefaultAddress === UNSPECIFIED ? [] : [dump.DefaultAddress];
  return {
    hostname: dump.Hostname,
    name,
    namespace,
    registry,
    addresses: dump.ClusterVIPs?.Addresses?.[clusterId] ?? own,
    autoAddress: undefined,
    ports: dump.Ports.map(({ Name, Port, Protocol: protocol }) => ({ name: Name, port: Port, protocol })),
    resolution,
    meshExternal: dump.MeshExternal === true,
    headless: registry === "Kubernetes" && resolution === "passthrough" && own.length === 0,
    labels: {},
    exportTo: [],
    subjectAltNames: [],
    createdAt: 0,
    ...(dump.Attributes.PublishNotReadyAddresses === true && { publishNotReady: true }),
  };
}

function endpointOf(key: string, dump: EndpointDump): Endpoint {
  return {
    address: dump.Addresses[0] ?? "",
    ports: { [dump.ServicePortName]: dump.EndpointPort },
    labels: {},
    namespace: key.split("/")[0] ?? "",
    workloadName: "",
    serviceAccount: "",
    tlsMode: "disabled",
    network: dump.Network ?? "",
    locality: "",
    clusterId: dump.Locality?.ClusterID ?? "",
    weight: 0,
    health: HEALTH[dump.HealthStatus] ?? "unhealthy",
    ...(dump.SubDomain && { podName: { hostname: dump.HostName ?? "", subdomain: dump.SubDomain } }),
  };
}

function proxyOf({ proxy }: NameTableCase): MeshProxy {
  const { Type: type, IPAddresses: addresses, DNSDomain: dnsDomain, Metadata: metadata } = proxy;
  const namespace = dnsDomain.split(".")[0] ?? "";
  const id = `proxy.${namespace}`;
  return {
    nodeId: [type, addresses[0], id, dnsDomain].join("~"),
    type,
    addresses,
    id,
    namespace,
    dnsDomain,
    labels: {},
    serviceAccount: "",
    metadata: { CLUSTER_ID: metadata.ClusterID ?? "", DNS_CAPTURE: "true" },
    envoyVersion: "",
    extensions: new Set(),
  };
}
