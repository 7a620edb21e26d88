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
  readonly health: "healthy" | "unhealthy" | "draining";
}

/** All endpoints of one service. Replaced as a whole; its parts keep their identity where nothing changed. */
export interface EndpointSet {
  readonly endpoints: readonly Endpoint[];
  /** SPIFFE ids of all endpoints, sorted; the same array as before when the set of accounts did not change. */
  readonly identities: readonly string[];
}

export const NO_ENDPOINTS: EndpointSet = { endpoints: [], identities: [] };
