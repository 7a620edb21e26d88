/** Clusters of services, as clients see them: one per port, and one per port and subset. */
import { create, type JsonObject } from "@bufbuild/protobuf";
import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import {
  ClusterSchema,
  Cluster_DiscoveryType as DiscoveryType,
  Cluster_DnsLookupFamily as DnsFamily,
  Cluster_LbPolicy as LbPolicy,
} from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { ApiVersion, ConfigSourceSchema } from "#gen/envoy/config/core/v3/config_source_pb.ts";
import { HealthStatus } from "#gen/envoy/config/core/v3/health_check_pb.ts";
import { CaresDnsResolverConfigSchema } from "#gen/envoy/extensions/network/dns_resolver/cares/v3/cares_dns_resolver_pb.ts";
import type { EndpointSet } from "#model/service/endpoint.ts";
import type { Service, ServicePort } from "#model/service/service.ts";
import { localityEndpoints } from "../endpoints/assignment.ts";
import type { EndpointsInput, PeerPolicies } from "../endpoints/input.ts";
import { exchangeFilter } from "../filters/tcp-proxy.ts";
import { configOrigin, serviceMetadata } from "../names/metadata.ts";
import { outboundServerName, statPrefix } from "../names/names.ts";
import { statName } from "../names/stat-name.ts";
import type { MtlsMode } from "../policies/peer-authentication.ts";
import { type EffectivePolicy, effectivePolicy } from "../scope/traffic-policy.ts";
import { upstreamTls } from "../tls/upstream-tls.ts";
import type { ClusterTraits } from "../traits/traits.ts";
import { bytesOf, duration, type Init, pack } from "../wire/encode.ts";
import { connectionLimits, outlierDetection } from "./connection-pool.ts";
import { httpOptions, preservesCase, upstreamProtocol } from "./http-options.ts";
import { commonBalancing, loadBalancing } from "./load-balancing.ts";
import { withProxyProtocol } from "./proxy-protocol.ts";

type Cluster = Init<typeof ClusterSchema>;

/** Everything one outbound cluster is made from. */
export interface OutboundClusterInput {
  readonly name: string;
  readonly service: Service;
  readonly port: ServicePort;
  /** Empty for the service as a whole. */
  readonly subset: string;
  readonly rule: ConfigObject<DestinationRule> | undefined;
  /** SPIFFE ids of the endpoints. */
  readonly identities: readonly string[];
  /** TLS goes through it unopened, as it came. */
  readonly isPassed: boolean;
  /** What the endpoints accept, as far as a client can know. */
  readonly mtls: MtlsMode;
  /** Endpoints that are part of the cluster because they are found by DNS; the others come by EDS. */
  readonly dnsEndpoints: EndpointSet | undefined;
  readonly peerPolicies: PeerPolicies | undefined;
  /** Where the proxy is, if it matters for the order of endpoints found by DNS. */
  readonly locality: string;
  /** Networks the proxy wants to know endpoints of that are found by DNS, separated by commas; all when not given. */
  readonly networkView?: string;
  readonly traits: ClusterTraits;
  readonly mesh: MeshConfig;
}

/** How the endpoints of a cluster are found. */
export type Discovery = "eds" | "strict-dns" | "logical-dns" | "original-dst";

/** What decides how endpoints are found. */
export type DiscoveryInput = Pick<OutboundClusterInput, "service" | "port" | "subset" | "rule" | "traits">;

/** Gateways receive no captured connections, so they have no original destination to go to. */
export function discoveryOf({ service, port, subset, rule, traits }: DiscoveryInput): Discovery {
  const subsets = subset === "" ? [undefined] : [undefined, subset];
  // What goes to the original destination for the service as a whole does so for each of its subsets, and what does for a
  // subset as a whole on each of its ports, whatever settings these have.
  const policies = [
    ...subsets.map((name) => effectivePolicy(rule?.spec, port.port, name)),
    rule?.spec.subsets?.find(({ name }) => name === subset)?.trafficPolicy,
  ];
  if (policies.some((policy) => policy?.loadBalancer?.simple === "PASSTHROUGH")) return "original-dst";
  switch (service.resolution) {
    case "dns":
      return "strict-dns";
    case "dns-round-robin":
      return "logical-dns";
    case "passthrough":
      return traits.role === "router" || (traits.edsForHeadless && service.registry === "Kubernetes")
        ? "eds"
        : "original-dst";
    default:
      return "eds";
  }
}

/** Canonical bytes of the cluster. */
export function outboundCluster(input: OutboundClusterInput): Uint8Array {
  const { name, service, port, subset, rule, isPassed, traits, mesh } = input;
  const policy = effectivePolicy(rule?.spec, port.port, subset === "" ? undefined : subset);
  const discovery = discoveryOf(input);
  const pool = policy.connectionPool;
  const protocol = upstreamProtocol({ protocol: port.protocol, pool, direction: "outbound", traits, mesh });
  const tls = isPassed
    ? NO_TLS
    : upstreamTls({
        ...input,
        tls: policy.tls,
        serverName: outboundServerName(service.hostname, port.port, subset),
        isHttp2: protocol === "http2",
        isOriginalDestination: discovery === "original-dst",
        ruleSelects: rule?.spec.workloadSelector !== undefined,
      });
  const istio = metadata(input, policy);
  return bytesOf(ClusterSchema, {
    name,
    ...discoverySettings(discovery, input),
    ...connectionLimits({ pool, mesh, traits, budget: policy.retryBudget }),
    ...(policy.outlierDetection && { outlierDetection: outlierDetection(policy.outlierDetection) }),
    commonLbConfig: {
      ...commonBalancing(policy, service, input),
      ...(service.session && subset === "" && !isPassed && { overrideHostStatus: { statuses: SESSION_STATUSES } }),
    },
    ...(discovery === "original-dst"
      ? { lbPolicy: LbPolicy.CLUSTER_PROVIDED }
      : port.protocol === "Redis" && traits.redisFilter
        ? { lbPolicy: LbPolicy.MAGLEV }
        : loadBalancing(policy.loadBalancer)),
    ...httpOptions({ protocol, pool, preserveHeaderCase: preservesCase(port.protocol, traits), upstream: tls.http }),
    ...withProxyProtocol(tls.sockets, isPassed ? undefined : policy.proxyProtocol),
    ...(Object.keys(istio).length > 0 && { metadata: { filterMetadata: { istio } } }),
    altStatName: statPrefix(
      statName(mesh.outboundClusterStatName, { service, port, subset, targetPort: 0, fallback: name }),
    ),
    ...(traits.metadataExchange && { filters: [exchangeFilter(traits)] }),
  });
}

/** Sessions go on with endpoints that get nothing new any more. */
const SESSION_STATUSES = [HealthStatus.HEALTHY, HealthStatus.DRAINING, HealthStatus.UNKNOWN, HealthStatus.DEGRADED];

/** Where the TLS of others is passed on, none is added. */
const NO_TLS = { http: undefined, sockets: {} };

function discoverySettings(discovery: Discovery, input: OutboundClusterInput): Cluster {
  switch (discovery) {
    case "eds":
      return {
        clusterDiscoveryType: { case: "type", value: DiscoveryType.EDS },
        edsClusterConfig: { edsConfig: EDS_CONFIG, serviceName: input.name },
      };
    case "original-dst": {
      const { targetPort } = input.port;
      return {
        clusterDiscoveryType: { case: "type", value: DiscoveryType.ORIGINAL_DST },
        ...(targetPort !== undefined &&
          changesPort(input) && {
            lbConfig: { case: "originalDstLbConfig", value: { upstreamPortOverride: targetPort } },
          }),
      };
    }
    case "strict-dns":
      return { clusterDiscoveryType: { case: "type", value: DiscoveryType.STRICT_DNS }, ...dnsSettings(input) };
    case "logical-dns":
      return { clusterDiscoveryType: { case: "type", value: DiscoveryType.LOGICAL_DNS }, ...dnsSettings(input) };
  }
}

/** A router goes to the original destination only because a rule says so, and to another port only for its subsets. */
function changesPort({ subset, traits }: OutboundClusterInput): boolean {
  return traits.role === "sidecar" || subset !== "";
}

const EDS_CONFIG = create(ConfigSourceSchema, {
  configSourceSpecifier: { case: "ads", value: {} },
  initialFetchTimeout: duration(0),
  resourceApiVersion: ApiVersion.V3,
});

/** Few questions per socket: the resolver of the system answers from one source port only so many. */
function dnsResolver({ dnsQueriesPerSocket: udpMaxQueries = 100, lackedFields = [] }: ClusterTraits) {
  const isKnown = !lackedFields.includes("CaresDnsResolverConfig.udp_max_queries");
  return {
    name: "envoy.network.dns_resolver.cares",
    typedConfig: pack(CaresDnsResolverConfigSchema, isKnown ? { udpMaxQueries } : {}),
  };
}

/** Envoy refuses shorter ones, and has a rate of its own where none is given. */
const SHORTEST_REFRESH_MS = 1;

/** Nobody can tell at the gateway whether TLS that is passed on is mutual: so it goes only to endpoints that take it. */
export function dnsEndpointsInput(input: OutboundClusterInput, endpoints: EndpointSet): EndpointsInput {
  return { ...input, endpoints, onlyMtls: input.isPassed };
}

function dnsSettings(input: OutboundClusterInput): Cluster {
  const { name, dnsEndpoints, mesh, traits } = input;
  const found = dnsEndpoints && dnsEndpointsInput(input, dnsEndpoints);
  const endpoints = found === undefined ? [] : localityEndpoints({ ...found, labels: traits.labels });
  return {
    dnsLookupFamily: lookupFamily(traits),
    typedDnsResolverConfig: dnsResolver(traits),
    ...(!traits.lackedFields?.includes("Cluster.dns_jitter") && { dnsJitter: duration(traits.dnsJitterMs ?? 100) }),
    ...(mesh.dnsRefreshRate > SHORTEST_REFRESH_MS && { dnsRefreshRate: duration(mesh.dnsRefreshRate) }),
    respectDnsTtl: true,
    loadAssignment: { clusterName: name, endpoints },
  };
}

/** With both families Envoy tries the addresses of a host in turn, and takes the first that answers. */
function lookupFamily({ ipMode, looksUpBoth }: ClusterTraits): DnsFamily {
  if (looksUpBoth) return DnsFamily.ALL;
  return ipMode === "ipv6" ? DnsFamily.V6_ONLY : DnsFamily.V4_ONLY;
}

function metadata({ service, rule, subset, traits }: OutboundClusterInput, policy: EffectivePolicy): JsonObject {
  const mode = policy.tls?.mode;
  return {
    ...(!traits.withoutServices && { services: [serviceMetadata(service)] }),
    ...(service.meshExternal && subset === "" && { external: true }),
    ...(rule && { config: configOrigin(rule) }),
    ...(subset !== "" && { subset }),
    ...((mode === "SIMPLE" || mode === "MUTUAL") && { alpn_override: "false" }),
  };
}
