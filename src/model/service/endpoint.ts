import type { Service, ServicePort } from "./service.ts";

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
  /**
   * `unknown`: nobody watches it, so it is taken to be well; `draining`: finishes what it has begun, for services with
   * sessions; `terminating`: does not count at all any more.
   */
  readonly health: "unknown" | "healthy" | "unhealthy" | "draining" | "terminating";
  /** Labelled to finish what it has begun and to get nothing new, whatever its health is. */
  readonly drains?: true;
  /** All addresses of a workload of both families, the first of which is `address`. */
  readonly addresses?: readonly string[];
  /** Number of the service port by its name, as the ServiceEntry has it: another may define the same host otherwise. */
  readonly servicePorts?: Readonly<Record<string, number>>;
  /** With which it has a name of its own below the service's domain: `hostname.subdomain`. */
  readonly podName?: { readonly hostname: string; readonly subdomain: string };
  /** The machine it runs on. */
  readonly nodeName?: string;
  /** It stands for endpoints of another network. */
  readonly isNetworkGateway?: true;
}

/** All endpoints of one service. Replaced as a whole; its parts keep their identity where nothing changed. */
export interface EndpointSet {
  readonly endpoints: readonly Endpoint[];
  /** SPIFFE ids of all endpoints, sorted; the same array as before when the set of accounts did not change. */
  readonly identities: readonly string[];
}

/** The port at which the endpoint serves a port of its service, found by number where its object numbered it. */
export function endpointPort({ ports, servicePorts }: Endpoint, port: ServicePort): number | undefined {
  if (servicePorts === undefined) return ports[port.name];
  const name = Object.keys(servicePorts).find((key) => servicePorts[key] === port.port);
  return name === undefined ? undefined : ports[name];
}

/** Whether requests may go to the endpoint. One that nobody checks is taken to be well. */
export function takesRequests({ health }: Pick<Endpoint, "health">): boolean {
  return health === "healthy" || health === "unknown";
}

/** Whether clients are told of the endpoint. */
export function isOffered(
  { health, drains }: Endpoint,
  service: Pick<Service, "trafficDistribution" | "offersUnready" | "session">,
): boolean {
  // Only clients that stay with an endpoint have to know that it is about to end.
  const isKept = service.session?.by === "cookie";
  if (drains === true && !isKept) return false;
  switch (health) {
    case "unknown":
    case "healthy":
      return true;
    case "unhealthy":
      // Clients that prefer near endpoints have to know how many of these there would be.
      return service.trafficDistribution !== undefined || service.offersUnready === true;
    case "draining":
      return isKept;
    case "terminating":
      return false;
  }
}

export const NO_ENDPOINTS: EndpointSet = { endpoints: [], identities: [] };
