/** Kubernetes Services to services of the model. */
import type { ConfigObject } from "#config/config-object.ts";
import type { KubernetesServicePort, Service as ServiceSpec } from "#config/kinds/service.ts";
import type { MeshConfig } from "#config/mesh-config.ts";
import { type Protocol, parseProtocol } from "#config/protocol.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { Resolution, Service } from "#model/service.ts";

const EXPORT_TO = "networking.istio.io/exportTo";
const CANONICAL_ACCOUNTS = "alpha.istio.io/canonical-serviceaccounts";
const KUBERNETES_ACCOUNTS = "alpha.istio.io/kubernetes-serviceaccounts";
/** Protocols in which the server speaks first or DNS: detection would break them. */
const PORTS_WITHOUT_DETECTION: ReadonlySet<number> = new Set([25, 53, 3306, 27017]);
const APP_PROTOCOLS: ReadonlyMap<string, Protocol> = new Map([
  ["kubernetes.io/h2c", "HTTP2"],
  ["kubernetes.io/ws", "HTTP"],
  ["kubernetes.io/wss", "HTTPS"],
]);

/** The service that a Kubernetes Service stands for. Its address is empty where the user gave none. */
export function kubernetesService(
  { metadata, spec }: ConfigObject<ServiceSpec>,
  mesh: MeshConfig,
  domain: string,
): Service {
  return {
    hostname: `${metadata.name}.${metadata.namespace}.svc.${domain}`,
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
    exportTo: listOf(metadata.annotations[EXPORT_TO]) ?? mesh.defaultServiceExportTo,
    subjectAltNames: [
      ...(listOf(metadata.annotations[CANONICAL_ACCOUNTS]) ?? []),
      ...(listOf(metadata.annotations[KUBERNETES_ACCOUNTS]) ?? []).map((serviceAccount) =>
        formatSpiffeId({ trustDomain: mesh.trustDomain, namespace: metadata.namespace, serviceAccount }),
      ),
    ],
    createdAt: metadata.createdAt,
  };
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
