/** Kubernetes Services to services of the model. */

import type { Node, NodeStatus } from "#config/kinds/node/schema.ts";
import type { KubernetesServicePort, Service as ServiceSpec, ServiceStatus } from "#config/kinds/service/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { type Protocol, parseProtocol } from "#config/terms/protocol.ts";
import { defaultExportTo, serviceExportTo } from "#config/terms/visibility.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { Features } from "#model/features.ts";
import type { Resolution, Service, Session } from "#model/service/service.ts";
import { podPortName } from "#model/workload/pod-ports.ts";

const TRAFFIC_DISTRIBUTION = "networking.istio.io/traffic-distribution";
const NODE_SELECTOR = "traffic.istio.io/nodeSelector";
const CANONICAL_ACCOUNTS = "alpha.istio.io/canonical-serviceaccounts";
const KUBERNETES_ACCOUNTS = "alpha.istio.io/kubernetes-serviceaccounts";
/** Protocols in which the server speaks first or DNS: detection would break them. */
const PORTS_WITHOUT_DETECTION: ReadonlySet<number> = new Set([25, 53, 3306, 27017]);
const APP_PROTOCOLS: ReadonlyMap<string, Protocol> = new Map([
  ["kubernetes.io/h2c", "HTTP2"],
  ["kubernetes.io/ws", "HTTP"],
  ["kubernetes.io/wss", "HTTPS"],
]);

/** A Service object. */
export type ServiceObject = ConfigObject<ServiceSpec, ServiceStatus>;

/** What services depend on beside their objects. */
export interface ServiceContext {
  readonly mesh: MeshConfig;
  readonly features: ServiceFeatures;
}

/** The switches that services depend on: the same in all clusters. */
export type ServiceFeatures = Pick<
  Features,
  "domain" | "sendUnhealthy" | "sessionCookieLabel" | "sessionHeaderLabel" | "canonicalExternal"
>;

/** The service that a Kubernetes Service stands for. Its address is empty where the user gave none. */
export function kubernetesService(object: ServiceObject, { mesh, features }: ServiceContext): Service {
  const { metadata, spec } = object;
  const distribution = trafficDistribution(spec.trafficDistribution, metadata.annotations);
  const externalAddresses = [...loadBalancers(object), ...(spec.externalIPs ?? [])];
  return {
    hostname: `${metadata.name}.${metadata.namespace}.svc.${features.domain}`,
    name: metadata.name,
    namespace: metadata.namespace,
    registry: "Kubernetes",
    addresses: addressesOf(spec),
    autoAddress: undefined,
    ports: (spec.ports ?? []).map((port) => ({ name: port.name ?? "", port: port.port, protocol: portProtocol(port) })),
    resolution: resolutionOf(spec),
    meshExternal: isExternalName(spec),
    headless: spec.clusterIP === "None",
    labels: metadata.labels,
    exportTo: serviceExportTo(metadata) ?? defaultExportTo(mesh.defaultServiceExportTo),
    subjectAltNames: [
      ...(listOf(metadata.annotations[CANONICAL_ACCOUNTS]) ?? []),
      ...(listOf(metadata.annotations[KUBERNETES_ACCOUNTS]) ?? []).map((serviceAccount) =>
        formatSpiffeId({ trustDomain: mesh.trustDomain, namespace: metadata.namespace, serviceAccount }),
      ),
    ],
    createdAt: metadata.createdAt,
    ...(spec.selector && { selector: spec.selector, targetPorts: targetPorts(spec) }),
    ...(isExternalName(spec) && { aliasOf: spec.externalName ?? "" }),
    ...(distribution && { trafficDistribution: distribution }),
    ...(spec.internalTrafficPolicy === "Local" && { nodeLocal: true }),
    ...(spec.publishNotReadyAddresses === true && { publishNotReady: true }),
    ...(externalAddresses.length > 0 && { externalAddresses }),
    ...labelledTraits(metadata.labels, features),
  };
}

function targetPorts({ ports = [] }: ServiceSpec): Readonly<Record<string, number | string>> {
  return Object.fromEntries(
    ports.map(({ name = "", port, protocol, targetPort }) => [
      name,
      typeof targetPort === "string" && targetPort !== "" ? podPortName(targetPort, protocol) : targetPort || port,
    ]),
  );
}

/** What the control plane is told to do with services, and with those of certain labels. */
export function labelledTraits(
  labels: Readonly<Record<string, string>>,
  features: ServiceFeatures,
): Pick<Service, "offersUnready" | "session"> {
  const session = sessionOf(labels, features);
  return { ...(features.sendUnhealthy && { offersUnready: true }), ...(session && { session }) };
}

/** The label of a cookie is its name, or `name:path`; that of a header its name. */
function sessionOf(
  labels: Readonly<Record<string, string>>,
  { sessionCookieLabel, sessionHeaderLabel }: ServiceFeatures,
): Session | undefined {
  const cookie = labels[sessionCookieLabel] ?? "";
  const [name = "", ...path] = cookie.split(":");
  if (cookie !== "") return { by: "cookie", name, path: path.length === 0 ? "/" : path.join(":") };
  const header = labels[sessionHeaderLabel] ?? "";
  return header === "" ? undefined : { by: "header", name: header, path: "" };
}

/** Which endpoints clients of a service prefer: the field of its spec, or else the annotation, which has no case. */
export function trafficDistribution(
  field: string | undefined,
  annotations: Readonly<Record<string, string>>,
): Service["trafficDistribution"] {
  return DISTRIBUTIONS.get(field ?? "") ?? ANNOTATED.get((annotations[TRAFFIC_DISTRIBUTION] ?? "").toLowerCase());
}

const DISTRIBUTIONS: ReadonlyMap<string, NonNullable<Service["trafficDistribution"]>> = new Map([
  ["PreferSameZone", "same-zone"],
  ["PreferClose", "same-zone"],
  ["PreferSameNode", "same-node"],
]);
const ANNOTATED = new Map([...DISTRIBUTIONS].map(([name, value]) => [name.toLowerCase(), value]));

/** Whether the service is a gateway that is reached through ports of nodes. */
export function isNodePortGateway({ metadata, spec }: ServiceObject): boolean {
  return spec.type === "NodePort" && metadata.annotations[NODE_SELECTOR] !== undefined;
}

/** The service with the ports of nodes, and, unless it has others, the outside addresses of those its annotation selects. */
export function throughNodes(
  service: Service,
  { metadata, spec }: ServiceObject,
  nodes: readonly ConfigObject<Node, NodeStatus>[],
): Service {
  const selector = Object.entries(nodeSelector(metadata.annotations[NODE_SELECTOR] ?? ""));
  const chosen = nodes.filter(({ metadata: { labels } }) => selector.every(([key, value]) => labels[key] === value));
  const addresses = chosen.flatMap(
    ({ status }) => status?.addresses?.find(({ type, address }) => type === "ExternalIP" && address)?.address ?? [],
  );
  const ports = Object.fromEntries((spec.ports ?? []).map(({ port, nodePort = 0 }) => [port, nodePort]));
  return { ...service, externalAddresses: service.externalAddresses ?? addresses, externalPorts: ports };
}

/** Labels as JSON; what cannot be read selects all nodes, as for Istio. */
function nodeSelector(annotation: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(annotation);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function loadBalancers({ spec, status }: ServiceObject): readonly string[] {
  if (spec.type !== "LoadBalancer") return [];
  return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }) => ip || hostname || []);
}

/** Whether the Service only gives another name to a host elsewhere. */
export function isExternalName(spec: ServiceSpec): boolean {
  return spec.type === "ExternalName" && (spec.externalName ?? "") !== "";
}

/** The protocol that a port's `appProtocol`, or else the first part of its name, declares. */
function portProtocol(port: KubernetesServicePort): Protocol {
  if (port.protocol === "UDP") return "UDP";
  const known = APP_PROTOCOLS.get(port.appProtocol ?? "");
  if (known !== undefined) return known;
  const name = (port.appProtocol ?? port.name ?? "").toLowerCase();
  if (name.startsWith("grpc-web")) return "GRPC-Web";
  const protocol = parseProtocol(name.split("-", 1)[0] ?? "");
  return protocol === "Unsupported" && PORTS_WITHOUT_DETECTION.has(port.port) ? "TCP" : protocol;
}

function addressesOf(spec: ServiceSpec): readonly string[] {
  const { clusterIP = "", clusterIPs = [] } = spec;
  if (clusterIP === "" || clusterIP === "None") return [];
  return clusterIPs.length > 1 ? clusterIPs : [clusterIP];
}

function resolutionOf(spec: ServiceSpec): Resolution {
  if (spec.clusterIP === "None") return "passthrough";
  return isExternalName(spec) ? "alias" : "static";
}

function listOf(annotation: string | undefined): string[] | undefined {
  return annotation === undefined || annotation === "" ? undefined : annotation.split(",").map((part) => part.trim());
}
