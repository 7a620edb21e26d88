/** Tables about the small parts of generated configuration: names, addresses, domains, TLS, policies. */
import { create, fromBinary } from "@bufbuild/protobuf";
import { destinationRuleSchema } from "#config/kinds/destination-rule/schema.ts";
import type { PatchMatch } from "#config/kinds/envoy-filter/schema.ts";
import { gatewaySchema } from "#config/kinds/gateway/schema.ts";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { meshConfigSchema } from "#config/mesh/mesh-schema.ts";
import { parse } from "#config/schema/parse.ts";
import { parseProtocol } from "#config/terms/protocol.ts";
import { ClusterSchema, UpstreamConnectionOptionsSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { AddressSchema, CidrRangeSchema } from "#gen/envoy/config/core/v3/address_pb.ts";
import {
  TcpProxy_TunnelingConfigSchema,
  TcpProxySchema,
} from "#gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts";
import { QuicDownstreamTransportSchema } from "#gen/envoy/extensions/transport_sockets/quic/v3/quic_transport_pb.ts";
import { DownstreamTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import { connectionLimits } from "#translate/clusters/connection-pool.ts";
import { upstreamProtocol } from "#translate/clusters/http-options.ts";
import { tcpProxy } from "#translate/filters/tcp-proxy.ts";
import { hostInUrl, traceOperation, virtualHostName } from "#translate/names/names.ts";
import { statName } from "#translate/names/stat-name.ts";
import { matchesCluster } from "#translate/patches/match.ts";
import { serviceDomains } from "#translate/routes/domains.ts";
import { localAddresses, wildcardAddresses } from "#translate/scope/addresses.ts";
import { effectivePolicy } from "#translate/scope/traffic-policy.ts";
import { serverTls } from "#translate/tls/server-tls.ts";
import { socketAddress } from "#translate/traits/address.ts";
import { traitsOf } from "#translate/traits/traits.ts";
import { cidrRange } from "#translate/wire/cidr.ts";
import { compareJson } from "../../compare.ts";
import { type NodeDump, recordedProxy } from "../../recorded.ts";
import { dumpedService, type ServiceDump } from "../../recorded-mesh.ts";
import { formatResource, messageType, parseResource, throughBytes } from "../../resources.ts";
import { byRow, leftOut, type RowCheck, unitTables } from "../../unit-tables.ts";
import { generatedClusterFunctions } from "./generated-clusters.ts";
import { generatedListenerFunctions } from "./generated-listeners.ts";
import { generatedRouteFunctions } from "./generated-routes.ts";
import { tableNode } from "./table-mesh.ts";

interface HostRow {
  readonly host: string;
  readonly port: number;
  readonly match: string;
}

interface StatRow {
  readonly statPattern: string;
  readonly want: string;
}

const PORT = 80;

/** A table of the policy of a rule and that of its subset, to what is in effect for the subset. */
const mergedPolicy: RowCheck = byRow<{
  original?: object;
  subset?: object;
  expected?: object;
  port?: { Port: number };
}>(({ original, subset, expected = {}, port = { Port: PORT } }) => {
  const read = (policy: object | undefined, of: object | undefined) => {
    const spec = { host: "a", trafficPolicy: policy, subsets: of && [{ name: "s", labels: {}, trafficPolicy: of }] };
    const { value, problems } = parse(destinationRuleSchema, spec, "");
    if (value === undefined) throw new Error(JSON.stringify(problems));
    return value;
  };
  const withoutUnset = (policy: object) => JSON.parse(JSON.stringify(policy));
  const ours = effectivePolicy(read(original, subset ?? {}), port.Port, "s");
  return compareJson(withoutUnset(ours), withoutUnset(effectivePolicy(read(expected, undefined), port.Port)));
});

const serverContext: RowCheck = byRow<{
  server: { tls?: object };
  transportProtocol: number;
  mesh?: object;
  result?: unknown;
}>(({ server, transportProtocol, mesh, result }) => {
  const isQuic = transportProtocol !== 0;
  if (server.tls === undefined) return compareJson(undefined, result);
  const port = { number: PORT, name: "a", protocol: "HTTPS" };
  const servers = [{ ...server, port, hosts: ["a"] }];
  const tls = parse(gatewaySchema, { servers }, "").value?.servers?.[0]?.tls;
  if (tls === undefined) throw new Error("the server is refused");
  const pins = [...(tls.verifyCertificateSpki ?? []), ...(tls.verifyCertificateHash ?? [])];
  if (pins.some((pin) => pin.length < 43))
    return { leftOut: "Envoy refuses pins that are no hash; ours let nobody in" };
  const meshConfig = { ...DEFAULT_MESH_CONFIG, ...(parse(meshConfigSchema, mesh ?? {}, "").value as object) };
  const { configType } = serverTls({
    tls,
    isTcp: false,
    isQuic,
    traits: {},
    secrets: { certificate: "", roots: "" },
    mesh: meshConfig,
  });
  const bytes = configType.case === "typedConfig" ? configType.value.value : new Uint8Array();
  const type = messageType(DownstreamTlsContextSchema.typeName);
  const context = isQuic
    ? fromBinary(QuicDownstreamTransportSchema, bytes).downstreamTlsContext
    : fromBinary(DownstreamTlsContextSchema, bytes);
  const ours = context && formatResource(type, context);
  return compareJson(ours, throughBytes(type, parseResource(type, result)));
});

const tunneling: RowCheck = byRow<{
  destinationRule: object;
  routeDestinations: readonly { readonly destination: { readonly subset?: string } }[];
  expectedTunnelingConfig?: unknown;
}>(({ destinationRule, routeDestinations, expectedTunnelingConfig }) => {
  const rule = parse(destinationRuleSchema, destinationRule, "").value;
  const [only, ...more] = routeDestinations;
  const subset = more.length > 0 ? "" : (only?.destination.subset ?? "");
  const target = { statPrefix: "a", clusters: ["a"], weights: [], subset, rule, protocol: "TCP" } as const;
  const [filter] = tcpProxy(
    target,
    { metadataExchange: false, idleTimeoutMs: undefined, lacks: [] },
    DEFAULT_MESH_CONFIG,
  );
  const value = filter?.configType.case === "typedConfig" ? filter.configType.value.value : new Uint8Array();
  const { tunnelingConfig } = fromBinary(TcpProxySchema, value);
  const type = TcpProxy_TunnelingConfigSchema;
  return compareJson(tunnelingConfig && formatResource(type, tunnelingConfig), expectedTunnelingConfig);
});

/** What a DestinationRule's connection pool and the mesh say, as they are read. */
interface PoolRow {
  readonly connectionPool: object;
  readonly mesh: object;
}

function poolOf({ connectionPool, mesh }: PoolRow) {
  const rule = parse(destinationRuleSchema, { host: "a", trafficPolicy: { connectionPool } }, "").value;
  const settings = parse(meshConfigSchema, mesh, "").value as object;
  return { pool: rule?.trafficPolicy?.connectionPool, mesh: { ...DEFAULT_MESH_CONFIG, ...settings } };
}

const upgraded: RowCheck = byRow<PoolRow & { port: { Protocol: string }; upgrade: boolean }>((row) => {
  const protocol = row.port.Protocol === "UnsupportedProtocol" ? "Unsupported" : parseProtocol(row.port.Protocol);
  // That sidecars follow the client where the protocol is not known is decided elsewhere in Istio.
  const proxy = recordedProxy({ type: "router", id: "a.b", ipAddresses: ["1.1.1.1"], ...NOWHERE });
  const traits = traitsOf(DEFAULT_MESH_CONFIG, proxy).cluster;
  const ours = upstreamProtocol({ ...poolOf(row), protocol, direction: "outbound", traits });
  return compareJson(ours === "http2", row.upgrade);
});

const NOWHERE = { configNamespace: "", dnsDomain: "", metadata: {} };

const keepalive: RowCheck = byRow<PoolRow & { wantConnOpts?: unknown }>((row) => {
  const { pool, mesh } = poolOf(row);
  const ours = create(ClusterSchema, connectionLimits({ pool, mesh, traits: {} })).upstreamConnectionOptions;
  return compareJson(ours && formatResource(UpstreamConnectionOptionsSchema, ours), row.wantConnOpts);
});

const clusterPatches: RowCheck = byRow<{
  args: { cluster: { name: string }; host?: string; matchCondition: PatchMatch };
  want: boolean;
}>(({ args: { cluster, host, matchCondition }, want }) =>
  compareJson(matchesCluster(matchCondition.cluster, cluster.name, host === undefined ? [] : [host]), want),
);

export const configGenerationTables = unitTables("unit tables: config generation", ["pilot/pkg/networking"], {
  ...generatedClusterFunctions,
  ...generatedListenerFunctions,
  ...generatedRouteFunctions,
  shouldH2Upgrade: upgraded,
  applyTCPKeepalive: keepalive,
  clusterMatch: clusterPatches,
  TraceOperation: byRow<HostRow>(({ host, port, match }) => compareJson(traceOperation(hostInUrl(host), port), match)),
  DomainName: byRow<HostRow>(({ host, port, match }) => compareJson(virtualHostName(host, port), match)),
  IPv6Compliant: byRow<HostRow>(({ host, match }) => compareJson(hostInUrl(host), match)),
  BuildAddress: byRow<{ addr: string; port: number; expected: unknown }>(({ addr, port, expected }) => {
    // Ours tell socket files from addresses by what users write before the path.
    const ours = create(AddressSchema, socketAddress(addr.startsWith("/") ? `unix://${addr}` : addr, port));
    return compareJson(formatResource(AddressSchema, ours), expected);
  }),
  ConvertAddressToCidr: byRow<{ addr: string; want?: unknown }>(({ addr, want }) => {
    const range = cidrRange(addr);
    return compareJson(range && formatResource(CidrRangeSchema, create(CidrRangeSchema, range)), want);
  }),
  BuildStatPrefix: byRow<
    StatRow & {
      readonly host: string;
      readonly subsetName: string;
      readonly port: { readonly Name: string; readonly Port: number };
      readonly targetPort: number;
      readonly attributes: ServiceDump["Attributes"];
    }
  >(({ statPattern, host, subsetName, port, targetPort, attributes, want }) => {
    const service = dumpedService({ Hostname: host, ...(attributes && { Attributes: attributes }) });
    const named = { port: port.Port, name: port.Name };
    const input = { service, port: named, subset: subsetName, targetPort, fallback: "" };
    return compareJson(statName(statPattern, input), want);
  }),
  BuildInboundStatPrefix: byRow<
    StatRow & {
      readonly subset: string;
      readonly port: number;
      readonly portName: string;
      readonly tm: Readonly<Record<string, string>>;
    }
  >(({ statPattern, subset, port, portName, tm, want }) => {
    const { InstanceHostname: Hostname = "", KubernetesServiceName: Name, KubernetesServiceNamespace: Namespace } = tm;
    const kubernetes = Name !== undefined && Namespace !== undefined;
    const Attributes = kubernetes ? { Name, Namespace, ServiceRegistry: "Kubernetes" } : {};
    const service = dumpedService({ Hostname, Attributes });
    return compareJson(statName(statPattern, { service, port: { port, name: portName }, subset, fallback: "" }), want);
  }),
  generateVirtualHostDomains: byRow<{
    service: ServiceDump;
    node: {
      readonly DNSDomain: string;
      readonly IPAddresses?: readonly string[];
      readonly Metadata?: { readonly ClusterID: string };
    };
    want: readonly string[];
  }>(({ service, node, want }) => {
    const { DNSDomain, IPAddresses: ipAddresses = ["1.1.1.1"], Metadata } = node;
    const { listener } = traitsOf(DEFAULT_MESH_CONFIG, recordedProxy(tableNode({ ipAddresses })));
    // Addresses are given for each cluster; a registry knows those of its own.
    const own = service.ClusterVIPs?.Addresses?.[Metadata?.ClusterID ?? ""];
    const ours = { ...dumpedService(service), registry: "Kubernetes" as const, ...(own && { addresses: own }) };
    return compareJson(serviceDomains(ours, DNSDomain, { ...listener, autoAddresses: false }).all, want);
  }),
  getActualWildcardAndLocalHost: byRow<{ proxy: { IPAddresses: string[] }; expected: string[] }>(
    ({ proxy, expected }) => {
      const node: NodeDump = {
        type: "sidecar",
        id: "a.b",
        ipAddresses: proxy.IPAddresses,
        configNamespace: "b",
        dnsDomain: "",
        metadata: {},
      };
      const { ipMode } = traitsOf(DEFAULT_MESH_CONFIG, recordedProxy(node)).listener;
      return compareJson([wildcardAddresses(ipMode)[0], localAddresses(ipMode)[0]], expected);
    },
  ),
  MergeSubsetTrafficPolicy: mergedPolicy,
  "TCP proxy tunneling": tunneling,
  buildGatewayListenerTLSContext: serverContext,
  "ECDS from WasmPlugin": leftOut("WasmPlugin has no effect yet"),
});
