import type { ServicePort } from "./service.ts";

/** `region/zone/subzone`; parts may be empty. */
export type Locality = string;

export interface Endpoint {
  /** IP address, host name (DNS resolution), or `unix:///path`. */
  readonly address: string;
  /** Port by the name of the service port it serves. */
  readonly ports: Readonly<Record<string, number>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly namespace: string;
  readonly workloadName: string;
  readonly serviceAccount: string;
  /** `istio` when a sidecar or gateway of the mesh terminates mutual TLS there. */
  readonly tlsMode: "istio" | "disabled";
  readonly network: string;
  readonly locality: Locality;
  readonly clusterId: string;
  /** 0 means unset: 1. */
  readonly weight: number;
  /** `draining`: finishes what it has begun, for services with sessions; `terminating`: does not count at all any more. */
  readonly health: "healthy" | "unhealthy" | "draining" | "terminating";
  /** All addresses of a workload of both families, the first of which is `address`. */
  readonly addresses?: readonly string[];
  /** Number of the service port by its name, where several objects define one service with other ports of that name. */
  readonly servicePorts?: Readonly<Record<string, number>>;
  /** With which it has a name of its own below the service's domain: `hostname.subdomain`. */
  readonly podName?: { readonly hostname: string; readonly subdomain: string };
  /** The machine it runs on. */
  readonly nodeName?: string;
}

/** All endpoints of one service. Replaced as a whole; its parts keep their identity where nothing changed. */
export interface EndpointSet {
  readonly endpoints: readonly Endpoint[];
  /** SPIFFE ids of all endpoints, sorted; the same array as before when the set of accounts did not change. */
  readonly identities: readonly string[];
}

/** The port at which the endpoint serves a port of its service; undefined when it does not. */
export function endpointPort({ ports, servicePorts }: Endpoint, port: ServicePort): number | undefined {
  const number = servicePorts?.[port.name];
  return number === undefined || number === port.port ? ports[port.name] : undefined;
}

export const NO_ENDPOINTS: EndpointSet = { endpoints: [], identities: [] };
