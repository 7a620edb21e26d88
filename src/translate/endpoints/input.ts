/** What the endpoints of a cluster are made from. */

import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { PeerAuthentication } from "#config/kinds/peer-authentication/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { EndpointSet } from "#model/service/endpoint.ts";
import type { NetworkGateway } from "#model/service/network-gateway.ts";
import type { Service, ServicePort } from "#model/service/service.ts";

import type { EndpointLabels } from "../traits/switches.ts";

/** Policies that may apply to the endpoints, oldest first. */
export type PeerPolicies = readonly ConfigObject<PeerAuthentication>[];

/** Everything the endpoints of one cluster are made from. */
export interface EndpointsInput {
  readonly service: Service;
  readonly port: ServicePort;
  /** Empty for the service as a whole. */
  readonly subset: string;
  readonly rule: ConfigObject<DestinationRule> | undefined;
  readonly endpoints: EndpointSet;
  readonly peerPolicies: PeerPolicies | undefined;
  /** Where the proxy is: `region/zone/subzone`; empty where it does not matter. */
  readonly locality: string;
  /** Labels of the proxy that decide which endpoints are near, as `name=value`; unset where they are found by DNS, and labels do not count. */
  readonly proxyLabels?: readonly string[];
  /** Only endpoints that take mutual TLS: who passes TLS on unopened cannot see whether it is the mesh's own. */
  readonly onlyMtls?: boolean;
  /** Only endpoints of that machine. */
  readonly onlyNode?: string;
  /** Only endpoints of that cluster. */
  readonly onlyCluster?: string;
  readonly mesh: MeshConfig;
  /** The proxy's network; empty where it does not matter. */
  readonly network?: string;
  /** Networks the proxy wants to know of, separated by commas; empty for all. */
  readonly networkView?: string;
  /** Endpoints of both address families are offered with all their addresses: who calls takes the one that answers first. */
  readonly allAddresses?: boolean;
  /** What endpoints tell metrics, where it is not the usual. */
  readonly labels?: EndpointLabels | undefined;
  readonly networkGateways?: readonly NetworkGateway[];
}
