/** Tables about clusters and their endpoints, most of them by what a whole mesh leads to. */
import { fromBinary } from "@bufbuild/protobuf";
import { destinationRuleSchema } from "#config/kinds/destination-rule/schema.ts";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import type { MeshNetworks } from "#config/mesh/mesh-networks.ts";
import { meshConfigSchema } from "#config/mesh/mesh-schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { parse } from "#config/schema/parse.ts";
import { labelledTraits } from "#convert/services/kubernetes-service.ts";
import { type Cluster, ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import type { TransportSocket } from "#gen/envoy/config/core/v3/base_pb.ts";
import {
  StatefulSessionPerRouteSchema,
  StatefulSessionSchema,
} from "#gen/envoy/extensions/filters/http/stateful_session/v3/stateful_session_pb.ts";
import { UpstreamTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import { HttpProtocolOptionsSchema } from "#gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { Service } from "#model/service/service.ts";
import { localityEndpoints } from "#translate/endpoints/assignment.ts";
import { preferNear } from "#translate/endpoints/locality.ts";
import { SESSION_FILTER, sessionSettings } from "#translate/filters/session.ts";
import { configOrigin } from "#translate/names/metadata.ts";
import { localitySettings, type Preference } from "#translate/scope/traffic-policy.ts";
import { type UpstreamTls, type UpstreamTlsInput, upstreamTls } from "#translate/tls/upstream-tls.ts";
import { traitsOf } from "#translate/traits/traits.ts";
import { sortedRanges } from "#translate/wire/cidr.ts";
import { compareJson, firstOf } from "../../compare.ts";
import { type NodeDump, recordedProxy } from "../../recorded.ts";
import { dumpedService, type ServiceDump } from "../../recorded-mesh.ts";
import { byRow, leftOut, type RowCheck } from "../../unit-tables.ts";
import { narrowed, networking, opened, shown, tableNode, tableResources, written } from "./table-mesh.ts";

interface RuleRow {
  readonly clusterMode: string;
  readonly destRule: { readonly host: string };
  readonly service: ServiceDump;
  readonly port: { readonly Name: string; readonly Port: number };
  readonly meshConfig?: object;
}

/** A mesh with the row's service, which has one endpoint, and its rule. */
function ruledClusters({ destRule, service, port, meshConfig, clusterMode }: RuleRow) {
  const Endpoint = {
    Addresses: ["192.168.1.1"],
    EndpointPort: 10001,
    ServicePortName: port.Name,
    Labels: service.Attributes?.Labels ?? {},
    TLSMode: "istio",
  };
  const passed = clusterMode === "sni-dnat";
  const server = { hosts: ["*.local"], port: { number: 15443, name: "tls", protocol: "TLS" } };
  const gateway = networking("Gateway", { servers: [{ ...server, tls: { mode: "AUTO_PASSTHROUGH" } }] });
  return tableResources(
    {
      services: [service],
      instances: [{ Service: service, Endpoint }],
      configs: [networking("DestinationRule", destRule), ...(passed ? [gateway] : [])],
      mesh: meshConfig,
    },
    { type: passed ? "router" : "sidecar" },
  );
}

const ruled: RowCheck = byRow<RuleRow & { expectedSubsetClusters?: readonly object[] }>((row) => {
  const { expectedSubsetClusters: wanted = [], clusterMode, port, service } = row;
  const { clusters } = ruledClusters(row);
  const separator = clusterMode === "sni-dnat" ? "_." : "|";
  const prefix = ["outbound", port.Port, ""].join(separator);
  const ours = [...clusters.values()].filter(
    ({ name }) => name.startsWith(prefix) && name.endsWith(service.Hostname) && !name.startsWith(prefix + separator),
  );
  return compareJson(
    ours.map((cluster, i) => narrowed(shown(ClusterSchema, cluster), wanted[i])),
    wanted.map((cluster) => written(ClusterSchema, cluster)),
  );
});

function contextOf(socket: TransportSocket | undefined): unknown {
  const any = socket?.configType.case === "typedConfig" ? socket.configType.value : undefined;
  return shown(UpstreamTlsContextSchema, opened(UpstreamTlsContextSchema, any));
}

const uncheckedServer: RowCheck = byRow<RuleRow & { expectTLSContext: object }>((row) => {
  const { clusters } = ruledClusters(row);
  const cluster = clusters.get(`outbound|${row.port.Port}||${row.service.Hostname}`);
  return compareJson(contextOf(cluster?.transportSocket), written(UpstreamTlsContextSchema, row.expectTLSContext));
});

const pool: RowCheck = byRow<{
  connectionPool: object;
  retryBudget?: object;
  httpProtocolOptions: { readonly commonHttpProtocolOptions?: object };
  expectedHTTPPOpt: { readonly commonHttpProtocolOptions?: object };
  expectedCircuitBreakers: object;
}>(({ connectionPool, retryBudget, httpProtocolOptions, expectedHTTPPOpt, expectedCircuitBreakers }) => {
  const cluster = oneCluster({ connectionPool, retryBudget });
  const options = opened(HttpProtocolOptionsSchema, Object.values(cluster.typedExtensionProtocolOptions)[0]);
  const { commonHttpProtocolOptions = {} } = shown(HttpProtocolOptionsSchema, options) as Record<string, object>;
  const { circuitBreakers } = shown(ClusterSchema, cluster) as Record<string, object>;
  return firstOf([
    // What was set before and is not spoken of stays.
    compareJson(
      { ...httpProtocolOptions.commonHttpProtocolOptions, ...commonHttpProtocolOptions },
      expectedHTTPPOpt.commonHttpProtocolOptions,
    ),
    compareJson(circuitBreakers, expectedCircuitBreakers),
  ]);
});

const SERVICE: ServiceDump = {
  Hostname: "svc.example.com",
  DefaultAddress: "10.96.0.1",
  Ports: [{ Name: "http", Port: 8080, Protocol: "HTTP" }],
  Attributes: { Name: "svc", Namespace: "default", ServiceRegistry: "Kubernetes" },
};

/** The cluster of an ordinary service whose rule has that policy. */
function oneCluster(trafficPolicy: object): Cluster {
  const configs = [networking("DestinationRule", { host: SERVICE.Hostname, trafficPolicy })];
  return tableResources({ services: [SERVICE], configs }).cluster(`outbound|8080||${SERVICE.Hostname}`);
}

const usualCluster: RowCheck = byRow<{ discovery: number; expectedCluster?: object }>((row) => {
  if (row.discovery !== 3) return { leftOut: "no service leads to a cluster that names its endpoints itself" };
  const ours = tableResources({ services: [{ ...SERVICE, Hostname: "host" }] }).cluster("outbound|8080||host");
  const { name: _, altStatName: __, connectTimeout: ___, ...wanted } = row.expectedCluster as Record<string, object>;
  const { serviceName: ____, ...edsClusterConfig } = wanted.edsClusterConfig as Record<string, unknown>;
  const like = { ...wanted, edsClusterConfig };
  return compareJson(narrowed(shown(ClusterSchema, ours), like), written(ClusterSchema, like));
});

interface TlsRow {
  readonly tls?: object;
  readonly router?: boolean;
  readonly h2?: boolean;
}

function tlsInput({ tls, router = false, h2 = false }: TlsRow, metadata: object = {}): UpstreamTlsInput {
  const rule = parse(destinationRuleSchema, { host: "a", trafficPolicy: { tls } }, "").value;
  const node = tableNode({ type: router ? "router" : "sidecar", metadata: metadata as NodeDump["metadata"] });
  return {
    tls: rule?.trafficPolicy?.tls,
    service: dumpedService(SERVICE),
    identities: [],
    mtls: "PERMISSIVE",
    serverName: "",
    isHttp2: h2,
    isOriginalDestination: false,
    ruleSelects: false,
    traits: traitsOf(DEFAULT_MESH_CONFIG, recordedProxy(node)).cluster,
    mesh: DEFAULT_MESH_CONFIG,
  };
}

const upstreamContext: RowCheck = byRow<
  TlsRow & {
    opts: {
      mesh?: object;
      isDrWithSelector?: boolean;
      serviceAccounts?: readonly string[];
      serviceRegistry?: Service["registry"];
    };
    result: { tlsContext?: object };
  }
>((row) => {
  const { mesh = {}, isDrWithSelector = false, serviceAccounts = [], serviceRegistry = "Kubernetes" } = row.opts;
  const input = tlsInput(row);
  const { sockets } = upstreamTls({
    ...input,
    service: { ...input.service, registry: serviceRegistry },
    identities: serviceAccounts,
    ruleSelects: isDrWithSelector,
    mesh: meshOf(mesh),
  });
  return compareJson(contextOf(sockets.transportSocket), written(UpstreamTlsContextSchema, row.result.tlsContext));
});

function meshOf(given: object): MeshConfig {
  return { ...DEFAULT_MESH_CONFIG, ...(parse(meshConfigSchema, given, "").value as object) };
}

const automaticTls: RowCheck = byRow<
  TlsRow & {
    autoMTLSEnabled: boolean;
    meshExternal: boolean;
    serviceMTLSMode: number;
    sans: readonly string[];
    sni: string;
    proxy: { readonly Metadata: Readonly<Record<string, string>> };
    want?: object;
  }
>((row) => {
  const { TLSClientCertChain: chain, TLSClientKey: key, TLSClientRootCert: roots } = row.proxy.Metadata;
  const files = { TLS_CLIENT_CERT_CHAIN: chain, TLS_CLIENT_KEY: key, TLS_CLIENT_ROOT_CERT: roots };
  const input = tlsInput(row, chain === undefined ? {} : files);
  const mode = (["DISABLE", "DISABLE", "PERMISSIVE", "STRICT"] as const)[row.serviceMTLSMode] ?? "DISABLE";
  const ours = upstreamTls({
    ...input,
    service: { ...input.service, meshExternal: row.meshExternal },
    identities: row.sans,
    serverName: row.sni,
    mtls: mode,
    mesh: meshOf({ enableAutoMtls: row.autoMTLSEnabled }),
  });
  // What was found out is as if a rule had said so.
  const wanted = row.want && upstreamTls(tlsInput({ tls: row.want }));
  return compareJson(contextOf(socketOf(ours)), contextOf(wanted && socketOf(wanted)));
});

function socketOf({ sockets }: UpstreamTls): TransportSocket | undefined {
  return sockets.transportSocket ?? sockets.transportSocketMatches?.[0]?.transportSocket;
}

const lookup: RowCheck = byRow<{
  dualStack: boolean;
  expectedFamily: number;
  proxy: { readonly IPAddresses: readonly string[] };
}>(({ dualStack, expectedFamily, proxy }) => {
  const service = { ...SERVICE, Resolution: 1, DefaultAddress: "" };
  const Endpoint = { Addresses: ["foo.example.com"], EndpointPort: 80, ServicePortName: "http" };
  const mesh = { services: [service], instances: [{ Service: service, Endpoint }], features: { dualStack } };
  const ours = tableResources(mesh, { ipAddresses: proxy.IPAddresses });
  return compareJson(ours.cluster(`outbound|8080||${service.Hostname}`).dnsLookupFamily, expectedFamily);
});

const ownSource: RowCheck = byRow<{ ips: readonly string[]; ipv4Expected: boolean; ipv6Expected: boolean }>((row) => {
  const ours = tableResources({}, { ipAddresses: row.ips }).cluster("InboundPassthroughCluster").upstreamBindConfig;
  const sources = [ours?.sourceAddress, ...(ours?.extraSourceAddresses ?? []).map(({ address }) => address)];
  const found = (source: string) => sources.some((address) => address?.address === source);
  return compareJson([found("127.0.0.6"), found("::6")], [row.ipv4Expected, row.ipv6Expected]);
});

/** What is said to metrics and filters about a cluster: `istio` in its metadata. */
function metadataOf(cluster: Cluster): Readonly<Record<string, unknown>> {
  return (cluster.metadata?.filterMetadata.istio ?? {}) as Readonly<Record<string, unknown>>;
}

const TLS_MODES = ["DISABLE", "SIMPLE", "MUTUAL", "ISTIO_MUTUAL"];

const alpnOverride: RowCheck = byRow<{
  tlsMode: number;
  want?: { readonly filterMetadata: { readonly istio: { readonly alpn_override: string } } };
}>(({ tlsMode, want }) => {
  const certificates = { clientCertificate: "/cert", privateKey: "/key" };
  const cluster = oneCluster({ tls: { mode: TLS_MODES[tlsMode], ...(tlsMode === 2 && certificates) } });
  return compareJson(metadataOf(cluster).alpn_override, want?.filterMetadata.istio.alpn_override);
});

const origin: RowCheck = byRow<{
  in: {
    readonly Name: string;
    readonly Namespace: string;
    readonly GroupVersionKind: { readonly Kind: string };
  };
  want: { readonly filterMetadata: { readonly istio: { readonly config: string } } };
}>(({ in: { Name: name, Namespace: namespace, GroupVersionKind }, want }) => {
  const metadata = { name, namespace, labels: {}, annotations: {}, createdAt: 0 };
  const object: ConfigObject = { kind: GroupVersionKind.Kind, metadata, spec: {}, origin: undefined };
  return compareJson(configOrigin(object), want.filterMetadata.istio.config);
});

const subsetName: RowCheck = byRow<{
  subset: string;
  want: { readonly filterMetadata?: { readonly istio: { readonly subset: string } } };
}>(({ subset, want }) => {
  if (want.filterMetadata === undefined) return { leftOut: "clusters of subsets always tell where they come from" };
  const configs = [networking("DestinationRule", { host: SERVICE.Hostname, subsets: [{ name: subset }] })];
  const cluster = tableResources({ services: [SERVICE], configs }).cluster(
    `outbound|8080|${subset}|${SERVICE.Hostname}`,
  );
  return compareJson(metadataOf(cluster).subset, want.filterMetadata.istio.subset);
});

const settingOfLocality: RowCheck = byRow<{
  dr?: object;
  mesh?: object;
  svc?: { readonly Attributes: { readonly TrafficDistribution?: number } };
  expected?: object;
}>(({ dr, mesh, svc, expected }) => {
  const rule = { host: "a", trafficPolicy: { loadBalancer: dr && { localityLbSetting: dr } } };
  const policy = parse(destinationRuleSchema, rule, "").value?.trafficPolicy ?? {};
  const { localityLbSetting } = meshOf({ localityLbSetting: mesh ?? { enabled: false } });
  const distribution = ([undefined, "same-zone", "same-node"] as const)[svc?.Attributes.TrafficDistribution ?? 0];
  const preference: Preference = distribution === undefined ? {} : { trafficDistribution: distribution };
  const ours = localitySettings(policy, { ...DEFAULT_MESH_CONFIG, localityLbSetting }, preference);
  const plain = (value: unknown) => value && JSON.parse(JSON.stringify(value));
  return compareJson(plain(ours), expected);
});

interface LocalityDump {
  readonly region?: string;
  readonly zone?: string;
  readonly subZone?: string;
}

const ENDPOINT = {
  address: "10.0.0.1",
  ports: { http: 80 },
  labels: {},
  namespace: "",
  workloadName: "",
  serviceAccount: "",
  tlsMode: "disabled" as const,
  network: "",
  locality: "",
  clusterId: "",
  weight: 1,
  health: "healthy" as const,
};

const HTTP_PORT = { name: "http", port: 80, protocol: "HTTP" as const };

function endpointsInput(endpoint: typeof ENDPOINT) {
  return {
    service: dumpedService(SERVICE),
    port: HTTP_PORT,
    subset: "",
    rule: undefined,
    endpoints: { endpoints: [endpoint], identities: [] },
    peerPolicies: undefined,
    locality: "",
    proxyLabels: [],
    mesh: DEFAULT_MESH_CONFIG,
  };
}

const place: RowCheck = byRow<{ locality: string; want: LocalityDump }>(({ locality, want }) => {
  const [group] = localityEndpoints(endpointsInput({ ...ENDPOINT, locality }));
  const { region = "", zone = "", subZone = "" } = group?.locality ?? {};
  return compareJson({ region, zone, subZone }, { region: "", zone: "", subZone: "", ...want });
});

const covered: RowCheck = byRow<{ locality: LocalityDump; rule: string; match: boolean }>((row) => {
  const { region = "", zone = "", subZone = "" } = row.locality;
  const metadata = { name: "rule", namespace: "", labels: {}, annotations: {}, createdAt: 0 };
  const distribute = [{ from: "*", to: { [row.rule]: 100 } }];
  const spec = { host: "a", trafficPolicy: { loadBalancer: { localityLbSetting: { distribute } } } };
  const groups = [{ locality: [region, zone, subZone].join("/"), endpoints: [ENDPOINT], weight: 1 }];
  const input = { ...endpointsInput(ENDPOINT), rule: { kind: "DestinationRule", metadata, spec, origin: undefined } };
  const [ours] = preferNear(groups, input);
  return compareJson(ours?.endpoints.length === 1, row.match);
});

const endpointMetadata: RowCheck = byRow<{
  enableTelemetryLabel: boolean;
  metadata: Readonly<Partial<Record<"TLSMode" | "ClusterID" | "Namespace" | "WorkloadName", string>>> & {
    readonly Labels?: Readonly<Record<string, string>>;
  };
  want: { readonly filterMetadata?: object };
}>(({ enableTelemetryLabel, metadata, want }) => {
  const { TLSMode = "", ClusterID: clusterId = "", Namespace: namespace = "", WorkloadName = "" } = metadata;
  const tlsMode = TLSMode === "istio" ? ("istio" as const) : ("disabled" as const);
  const endpoint = { ...ENDPOINT, clusterId, namespace, workloadName: WorkloadName, labels: metadata.Labels ?? {} };
  const labels = enableTelemetryLabel ? undefined : ("none" as const);
  const [group] = localityEndpoints({ ...endpointsInput({ ...endpoint, tlsMode } as typeof ENDPOINT), labels });
  return compareJson(group?.lbEndpoints?.[0]?.metadata?.filterMetadata, want.filterMetadata ?? {});
});

const session: RowCheck = byRow<{
  service?: { readonly Attributes: { readonly Labels: Readonly<Record<string, string>> } };
  expectedconfig?: object;
}>(({ service, expectedconfig }) => {
  const { session: found } = labelledTraits(service?.Attributes.Labels ?? {}, DEFAULT_FEATURES);
  const { [SESSION_FILTER]: any } = sessionSettings(found);
  const override = any && fromBinary(StatefulSessionPerRouteSchema, any.value).override;
  const ours = override?.case === "statefulSession" ? shown(StatefulSessionSchema, override.value) : undefined;
  return compareJson(ours, expectedconfig && written(StatefulSessionSchema, expectedconfig));
});

const internalNetworks: RowCheck = byRow<{
  networks: { readonly networks?: MeshNetworks };
  expectedconfig?: { readonly cidrRanges: readonly object[] };
}>(({ networks: { networks = {} }, expectedconfig }) => {
  const ranges = Object.values(networks).flatMap(({ endpoints = [] }) =>
    endpoints.flatMap(({ fromCidr }) => fromCidr ?? []),
  );
  return compareJson(sortedRanges(ranges), expectedconfig?.cidrRanges ?? []);
});

export const generatedClusterFunctions: Readonly<Record<string, RowCheck>> = {
  "ClusterBuilder.applyDestinationRule": ruled,
  "insecureSkipVerify in DR TLS": uncheckedServer,
  applyConnectionPool: pool,
  buildCluster: usualCluster,
  buildUpstreamClusterTLSContext: upstreamContext,
  "buildAutoMtlsSettings / auto mTLS": automaticTls,
  "dns lookup family": lookup,
  buildInboundPassthroughCluster: ownSource,
  AddALPNOverrideToMetadata: alpnOverride,
  AddConfigInfoMetadata: origin,
  AddSubsetToMetadata: subsetName,
  GetLocalityLbSetting: settingOfLocality,
  ConvertLocality: place,
  LocalityMatch: covered,
  "BuildLbEndpointMetadata/AppendLbEndpointMetadata": endpointMetadata,
  MaybeBuildStatefulSessionFilterConfig: session,
  MeshNetworksToEnvoyInternalAddressConfig: internalNetworks,
  ByteCount: leftOut("a text of Istio's own log"),
};
