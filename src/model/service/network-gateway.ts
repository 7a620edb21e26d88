/** Where endpoints of a network are reached from other networks. */
export interface NetworkGateway {
  readonly network: string;
  /** The cluster whose endpoints it leads to; empty for all of the network. */
  readonly clusterId: string;
  /** An IP address; a host name as long as nobody resolved it. */
  readonly address: string;
  readonly port: number;
}

/** IP addresses of gateways that are known by a host name, by that name; only those that were asked for with success. */
export type GatewayAddresses = ReadonlyMap<string, readonly string[]>;
