/** The abstract model of a service, whatever registry it comes from. */

import type { Protocol } from "#config/terms/protocol.ts";

export { isHttp, isHttp2, type Protocol } from "#config/terms/protocol.ts";

export interface ServicePort {
  readonly name: string;
  readonly port: number;
  readonly protocol: Protocol;
  /** The port to go to instead, at the address that was called: only services without endpoints of their own have one. */
  readonly targetPort?: number;
}

/** How Envoy finds the endpoints: `static` by EDS, `dns` by asking, `passthrough` by the original destination
 * address; `dynamic-dns` by the name in the request, which only waypoints can. */
export type Resolution = "static" | "dns" | "dns-round-robin" | "passthrough" | "alias" | "dynamic-dns";

export interface Service {
  /** Fully qualified: `httpbin.default.svc.cluster.local`, or the host of a ServiceEntry (which may be a wildcard). */
  readonly hostname: string;
  readonly name: string;
  readonly namespace: string;
  readonly registry: "Kubernetes" | "External";
  /** Addresses that clients call; empty for headless services and for hosts without one. */
  readonly addresses: readonly string[];
  /** The service as further clusters define it, by cluster id: there it has other addresses, and perhaps other ports. */
  readonly furtherServices?: Readonly<Record<string, Service>>;
  /** Only further clusters have it. */
  readonly isElsewhere?: true;
  /** Allocated because the user gave none; stable as long as the service exists. */
  readonly autoAddress: string | undefined;
  /** The same for IPv6. */
  readonly autoAddress6?: string;
  readonly ports: readonly ServicePort[];
  /** What it was joined of, where several objects declare the host: each is called at its own addresses, by its own ports. */
  readonly declarations?: readonly Service[];
  readonly resolution: Resolution;
  /** Outside the mesh: no mutual TLS towards it. */
  readonly meshExternal: boolean;
  readonly headless: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** `*`, `.` or namespaces; resolved against the mesh's default. */
  readonly exportTo: readonly string[];
  /** SANs given by the user (ServiceEntry.subjectAltNames); those of endpoints are in the endpoint set. */
  readonly subjectAltNames: readonly string[];
  readonly createdAt: number;
  /** Labels of the workloads it consists of, where it selects them. */
  readonly selector?: Readonly<Record<string, string>>;
  /** By the name of a port the one that it leads to at these workloads: a number, or a name that pods know (`podPortName`). */
  readonly targetPorts?: Readonly<Record<string, number | string>>;
  /** The host that an ExternalName service stands for. */
  readonly aliasOf?: string;
  /** ExternalName services that stand for this one, directly or through others; sorted. */
  readonly aliases?: readonly Pick<Service, "hostname" | "namespace">[];
  /** Which endpoints are preferred; unset means any. */
  readonly trafficDistribution?: "same-zone" | "same-node";
  /** Only endpoints on the caller's own node count (internalTrafficPolicy). */
  readonly nodeLocal?: true;
  /** Clients are told of endpoints that are not ready, whatever else they prefer. */
  readonly offersUnready?: true;
  /** How requests of a client stay with one endpoint, where the service is labelled so. */
  readonly session?: Session;
  /** Names are answered with the addresses of endpoints that are not ready too. */
  readonly publishNotReady?: true;
  /** Where the service is reached from outside its network: load balancers, external IPs, nodes. */
  readonly externalAddresses?: readonly string[];
  /** The port of the nodes by the service's port number, where it is reached through nodes. */
  readonly externalPorts?: Readonly<Record<number, number>>;
}

/** The service as one of the further clusters defines it; undefined where that does not have it. */
export function furtherService({ furtherServices = {} }: Service, clusterId: string): Service | undefined {
  return Object.hasOwn(furtherServices, clusterId) ? furtherServices[clusterId] : undefined;
}

/** Requests stay with one endpoint by what a cookie or a header says. */
export interface Session {
  readonly by: "cookie" | "header";
  readonly name: string;
  /** Of a cookie. */
  readonly path: string;
}

/** The port that connections to a number mean: a service may have that number for UDP too, as those for DNS do. */
export function connectedPort({ ports }: Pick<Service, "ports">, number: number): ServicePort | undefined {
  return ports.find(({ port, protocol }) => port === number && protocol !== "UDP");
}

/** Endpoints are kept per hostname and namespace, since two namespaces may define one host. */
export type ServiceKey = `${string}/${string}`;

export function serviceKey(service: Pick<Service, "namespace" | "hostname">): ServiceKey {
  return `${service.namespace}/${service.hostname}`;
}
