/**
 * What switches of the control plane change in resources, as parts of the traits of proxies. Only what differs from the
 * default is there: traits are part of the keys of views, which thousands of proxies have.
 */
import { DEFAULT_FEATURES, type Features } from "#model/features.ts";

/** What TLS is limited to. */
export type Compliance = Exclude<Features["compliance"], "">;

/** What switches change in clusters. */
export interface ClusterSwitches {
  /** Questions that one socket of the resolver asks; 0 for any number. */
  readonly dnsQueriesPerSocket?: number;
  readonly dnsJitterMs?: number;
  /** Counts what circuit breakers still allow. */
  readonly tracksRemaining?: true;
  /** Balances among the pods of headless services. */
  readonly edsForHeadless?: true;
  /** Localities count by their weights in any case. */
  readonly weighsLocalities?: true;
  /** Keys of Redis are spread over the endpoints. */
  readonly redisFilter?: true;
  /** Does not tell metrics which services it is. */
  readonly withoutServices?: true;
  /** Shows certificates in files of the proxy to servers outside of the mesh too. */
  readonly filesForExternal?: true;
  /** Does not offer to exchange metadata by ALPN. */
  readonly withoutExchangeAlpn?: true;
  /** Labels of workloads that are told beside the usual ones. */
  readonly exchangedLabels?: readonly string[];
  readonly compliance?: Compliance;
  /** Of endpoints found by DNS. */
  readonly labels?: EndpointLabels;
}

/** What endpoints tell metrics, where it is not the usual. */
export type EndpointLabels = "none" | "canonical-external";

/** What switches change in chains of network filters. */
export interface TcpSwitches {
  readonly withoutMongoFilter?: true;
  readonly mysqlFilter?: true;
  readonly redisFilter?: true;
  /** Labels of workloads that are told beside the usual ones. */
  readonly exchangedLabels?: readonly string[];
  readonly withoutExchangeAlpn?: true;
  /** Connections that listeners take at once; 0 for any number. */
  readonly connectionsPerEvent?: number;
  readonly anyTrustDomain?: true;
  readonly compliance?: Compliance;
}

/** What switches change in HTTP connection managers. */
export interface HttpSwitches {
  /** Tells HTTP/1.0 from other protocols too. */
  readonly detectsHttp10?: true;
  readonly without100Continue?: true;
  /** Takes the address of the connection for that of the client also where applications call. */
  readonly remoteAddress?: true;
  readonly internalNetworks?: true;
  readonly sessionFilter?: true;
}

/** What switches change in names that listeners and routes know. */
export interface ListenerSwitches {
  /** Hosts are not called with a dot at their end. */
  readonly withoutAbsoluteNames?: true;
}

/** For clusters. */
export function clusterSwitches(features: Features): ClusterSwitches {
  const labels = endpointLabels(features);
  return {
    ...(differs(features, "dnsQueriesPerSocket") && { dnsQueriesPerSocket: features.dnsQueriesPerSocket }),
    ...(differs(features, "dnsJitterMs") && { dnsJitterMs: features.dnsJitterMs }),
    ...(features.trackRemaining && { tracksRemaining: true }),
    ...(features.edsForHeadless && { edsForHeadless: true }),
    ...(features.weighLocalities && { weighsLocalities: true }),
    ...(features.redisFilter && { redisFilter: true }),
    ...(!features.clusterLabels && { withoutServices: true }),
    ...(!features.rulesForExternal && { filesForExternal: true }),
    ...tlsSwitches(features),
    ...(labels && { labels }),
  };
}

/** For chains of network filters. */
export function tcpSwitches(features: Features): TcpSwitches {
  return {
    ...(!features.mongoFilter && { withoutMongoFilter: true }),
    ...(features.mysqlFilter && { mysqlFilter: true }),
    ...(features.redisFilter && { redisFilter: true }),
    ...(differs(features, "connectionsPerEvent") && { connectionsPerEvent: features.connectionsPerEvent }),
    ...(features.anyTrustDomain && { anyTrustDomain: true }),
    ...tlsSwitches(features),
  };
}

/** For HTTP connection managers. */
export function httpSwitches(features: Features): HttpSwitches {
  return {
    ...(features.http10 && { detectsHttp10: true }),
    ...(!features.continue100 && { without100Continue: true }),
    ...(features.remoteAddress && { remoteAddress: true }),
    ...(features.internalNetworks && { internalNetworks: true }),
    ...(features.sessionFilter && { sessionFilter: true }),
  };
}

/** For listeners. */
export function listenerSwitches(features: Features): ListenerSwitches {
  return { ...(!features.absoluteNames && { withoutAbsoluteNames: true }) };
}

/** For endpoints; undefined for the usual. */
export function endpointLabels({ endpointLabels, canonicalExternal }: Features): EndpointLabels | undefined {
  if (!endpointLabels) return "none";
  return canonicalExternal ? "canonical-external" : undefined;
}

/** What both ends of connections in the mesh have. */
function tlsSwitches({
  exchangeByAlpn,
  exchangedLabels,
  compliance,
}: Features): Pick<ClusterSwitches, "withoutExchangeAlpn" | "exchangedLabels" | "compliance"> {
  return {
    ...(!exchangeByAlpn && { withoutExchangeAlpn: true }),
    ...(exchangedLabels.length > 0 && { exchangedLabels }),
    ...(compliance !== "" && { compliance }),
  };
}

function differs(features: Features, name: keyof Features): boolean {
  return features[name] !== DEFAULT_FEATURES[name];
}
