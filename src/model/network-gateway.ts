/** Where endpoints of a network are reached from other networks. */
export interface NetworkGateway {
  readonly network: string;
  /** The cluster whose endpoints it leads to; empty for all of the network. */
  readonly clusterId: string;
  readonly address: string;
  readonly port: number;
}
