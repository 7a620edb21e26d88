/** The endpoints of a cluster, grouped by where they are. */

import { isIP } from "node:net";
import type { JsonObject } from "@bufbuild/protobuf";
import { HealthStatus } from "#gen/envoy/config/core/v3/health_check_pb.ts";
import type {
  LbEndpointSchema,
  LocalityLbEndpointsSchema,
} from "#gen/envoy/config/endpoint/v3/endpoint_components_pb.ts";
import { ClusterLoadAssignmentSchema } from "#gen/envoy/config/endpoint/v3/endpoint_pb.ts";
import { compareText } from "#lib/text/compare-text.ts";
import { CANONICAL_NAME, CANONICAL_REVISION, canonicalService, hasLabels } from "#model/labels/labels.ts";
import { type Endpoint, endpointPort, isOffered } from "#model/service/endpoint.ts";
import type { ServicePort } from "#model/service/service.ts";
import { effectiveMode, modeOfPort } from "../policies/peer-authentication.ts";
import { socketAddress, UNIX_PREFIX } from "../traits/address.ts";
import { bytesOf, type Init } from "../wire/encode.ts";
import { fittingWeights } from "../wire/weights.ts";
import type { EndpointsInput } from "./input.ts";
import { type LocalityGroup, preferNear } from "./locality.ts";
import { acrossNetworks } from "./networks.ts";

/** One assignment, answered by EDS. */
export interface AssignmentInput extends EndpointsInput {
  readonly cluster: string;
}

/** Canonical bytes of the assignment. Endpoints with a host name are left out: only DNS clusters can have them. */
export function assignment(input: AssignmentInput): Uint8Array {
  return bytesOf(ClusterLoadAssignmentSchema, { clusterName: input.cluster, endpoints: localityEndpoints(input) });
}

/** The groups of a cluster's endpoints, in order of their locality. */
export function localityEndpoints(input: EndpointsInput): Init<typeof LocalityLbEndpointsSchema>[] {
  const groups = new Map<string, Endpoint[]>();
  for (const endpoint of withFittingWeights(usableEndpoints(input))) {
    const group = groups.get(endpoint.locality);
    if (group === undefined) groups.set(endpoint.locality, [endpoint]);
    else group.push(endpoint);
  }
  const sorted = [...groups].sort(([a], [b]) => compareText(a, b));
  const byDns = isResolvedByName(input);
  const mtls = (endpoint: Endpoint) => acceptsMtls(endpoint, portOf(endpoint, input.port, byDns) ?? 0, input);
  const located = sorted.map(([locality, all]): LocalityGroup => {
    const endpoints = acrossNetworks(all, { ...input, acceptsMtls: mtls });
    return { locality, endpoints, weight: sum(endpoints) };
  });
  const near = preferNear(located, input);
  // Envoy refuses a logical DNS cluster without a name: shares of localities cannot leave out the only one.
  const isLost =
    input.service.resolution === "dns-round-robin" && near.every(({ endpoints }) => endpoints.length === 0);
  return (isLost ? located : near).map((group) => localityGroup(group, input));
}

/** Whether there are any. */
export function hasEndpoints(input: EndpointsInput): boolean {
  return usableEndpoints(input).length > 0;
}

function usableEndpoints(input: EndpointsInput): readonly Endpoint[] {
  const { service, port, subset, rule, endpoints, onlyMtls = false } = input;
  const wanted = rule?.spec.subsets?.find(({ name }) => name === subset)?.labels;
  const byDns = isResolvedByName({ service });
  const usable = endpoints.endpoints.filter(
    (endpoint) =>
      isOffered(endpoint, service) &&
      portOf(endpoint, port, byDns) !== undefined &&
      (byDns ? endpoint.address !== "" : isAddress(endpoint.address) || isElsewhere(endpoint, input)) &&
      isVisible(endpoint, input) &&
      hasLabels(endpoint.labels, wanted) &&
      (!onlyMtls || acceptsMtls(endpoint, endpoint.ports[port.name] ?? 0, input)),
  );
  // Envoy refuses a logical DNS cluster with more than one name.
  return service.resolution === "dns-round-robin" ? usable.slice(0, 1) : usable;
}

/** An endpoint without address may be reached through the gateway of its network. */
function isElsewhere({ address, network }: Endpoint, { networkGateways = [] }: EndpointsInput): boolean {
  return address === "" && networkGateways.some((gateway) => gateway.network === network);
}

function isVisible({ network, nodeName = "", clusterId }: Endpoint, input: EndpointsInput): boolean {
  const { networkView, onlyNode = nodeName, onlyCluster = clusterId } = input;
  return isInView(network, networkView) && nodeName === onlyNode && clusterId === onlyCluster;
}

/** Whether endpoints of a network are among those that a proxy wants to know of; what is in no network always is. */
function isInView(network: string, networkView = ""): boolean {
  return networkView === "" || network === "" || networkView.split(",").includes(network);
}

function isResolvedByName({ service }: Pick<EndpointsInput, "service">): boolean {
  return service.resolution === "dns" || service.resolution === "dns-round-robin";
}

/** Clusters find the ports of their endpoints by number, assignments by name: two entries of one host may differ in both. */
function portOf(endpoint: Endpoint, port: ServicePort, byDns: boolean): number | undefined {
  return byDns ? endpointPort(endpoint, port) : endpoint.ports[port.name];
}

const HEALTH: Readonly<Record<Endpoint["health"], HealthStatus>> = {
  unknown: HealthStatus.UNKNOWN,
  healthy: HealthStatus.HEALTHY,
  unhealthy: HealthStatus.UNHEALTHY,
  draining: HealthStatus.DRAINING,
  terminating: HealthStatus.UNHEALTHY,
};

function withFittingWeights(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const weights = endpoints.map(({ weight }) => weight || 1);
  const fitting = fittingWeights(weights);
  return fitting === weights ? endpoints : endpoints.map((endpoint, i) => ({ ...endpoint, weight: fitting[i] ?? 1 }));
}

function isAddress(address: string): boolean {
  if (isIP(address) !== 0) return true;
  return address.startsWith(UNIX_PREFIX) && Buffer.byteLength(address) - UNIX_PREFIX.length <= LONGEST_PATH;
}

/** The kernel's limit on paths of sockets. */
const LONGEST_PATH = 107;

function sum(endpoints: readonly Endpoint[]): number {
  return endpoints.reduce((total, { weight }) => total + (weight || 1), 0);
}

function localityGroup(group: LocalityGroup, input: EndpointsInput): Init<typeof LocalityLbEndpointsSchema> {
  const [region = "", zone = "", subZone = ""] = group.locality.split("/");
  return {
    locality: { region, zone, subZone },
    lbEndpoints: group.endpoints.map((endpoint) => lbEndpoint(endpoint, input)),
    // Envoy refuses a weight of 0, which a group has whose endpoints are all out of reach.
    ...(group.weight > 0 && { loadBalancingWeight: group.weight }),
    ...(group.priority && { priority: group.priority }),
  };
}

function lbEndpoint(endpoint: Endpoint, input: EndpointsInput): Init<typeof LbEndpointSchema> {
  const port = portOf(endpoint, input.port, isResolvedByName(input)) ?? 0;
  const [, ...further] = input.allAddresses === true ? (endpoint.addresses ?? []) : [];
  return {
    hostIdentifier: {
      case: "endpoint",
      value: {
        address: socketAddress(endpoint.address, port),
        ...(further.length > 0 && {
          additionalAddresses: further.map((address) => ({ address: socketAddress(address, port) })),
        }),
      },
    },
    healthStatus: endpoint.drains === true ? HealthStatus.DRAINING : HEALTH[endpoint.health],
    loadBalancingWeight: endpoint.weight || 1,
    metadata: { filterMetadata: endpointMetadata(endpoint, acceptsMtls(endpoint, port, input), input) },
  };
}

/** The rule decides if it speaks of TLS; else whether the endpoint has a proxy, and no policy turned it off there. */
function acceptsMtls(endpoint: Endpoint, port: number, input: EndpointsInput): boolean {
  if (endpoint.isNetworkGateway) return true;
  if (endpoint.tlsMode !== "istio") return false;
  const mode = ruledTlsMode(input);
  if (mode !== undefined) return mode === "ISTIO_MUTUAL";
  const workload = { namespace: namespaceOf(endpoint), labels: endpoint.labels };
  const mtls = effectiveMode(input.peerPolicies ?? [], workload, input.mesh.rootNamespace);
  return modeOfPort(mtls, port) !== "DISABLE";
}

/** The mode of the subset's own policy, or of the rule's: unlike other settings it is not inherited by subsets. */
function ruledTlsMode({ rule, subset, port }: EndpointsInput): string | undefined {
  const spec = rule?.spec;
  const policy =
    subset === "" ? spec?.trafficPolicy : spec?.subsets?.find(({ name }) => name === subset)?.trafficPolicy;
  const ofPort = policy?.portLevelSettings?.find((settings) => settings.port?.number === port.port);
  const tls = ofPort?.tls ?? policy?.tls;
  return tls === undefined ? undefined : (tls.mode ?? "DISABLE");
}

/** Chooses the TLS of the connection, and tells metrics which workload the endpoint is. */
function endpointMetadata(endpoint: Endpoint, mtls: boolean, input: EndpointsInput): Record<string, JsonObject> {
  return {
    ...(mtls && { "envoy.transport_socket_match": { tlsMode: "istio" } }),
    ...(input.labels !== "none" && { istio: { workload: workloadText(endpoint, input) } }),
  };
}

/** Outside the mesh an endpoint may be called after its ServiceEntry. */
function workloadText(endpoint: Endpoint, { labels, service }: EndpointsInput): string {
  const { workloadName, clusterId } = endpoint;
  const isExternal = labels === "canonical-external" && service.meshExternal;
  const own = isExternal ? { ...endpoint.labels, ...canonicalLabels(service.labels) } : endpoint.labels;
  const namespace = isExternal ? service.namespace : namespaceOf(endpoint);
  return [workloadName, namespace, ...writtenService(own, workloadName), clusterId].join(";");
}

function canonicalLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(labels).filter(([name]) => name === CANONICAL_NAME || name === CANONICAL_REVISION),
  );
}

/** An endpoint written into a ServiceEntry is no workload of a namespace: only policies of the mesh apply to it. */
function namespaceOf({ workloadName, namespace }: Endpoint): string {
  return workloadName === "" ? "" : namespace;
}

/** The usual revision is not written. */
function writtenService(labels: Readonly<Record<string, string>>, workloadName: string): readonly string[] {
  const [service, revision] = canonicalService(labels, workloadName);
  return [service, revision === "latest" ? "" : revision];
}
