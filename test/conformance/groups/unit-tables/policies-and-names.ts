/** Tables about whom policies select, what gateways make of each other, access logs, and names that are read. */
import { create, toBinary } from "@bufbuild/protobuf";
import type { AuthorizationPolicy } from "#config/kinds/authorization-policy/schema.ts";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import { meshConfigSchema } from "#config/mesh/mesh-schema.ts";
import { type Layer, overlayProxyConfig } from "#config/proxy-config/proxy-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { parse } from "#config/schema/parse.ts";
import { NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { FileAccessLogSchema } from "#gen/envoy/extensions/access_loggers/file/v3/file_pb.ts";
import { proxyConfigOf } from "#inject/mesh/proxy-config.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import { parseProxyNode } from "#model/proxy/proxy-node.ts";
import { isSameKeySet } from "#sources/jwks/same-keys.ts";
import { accessLogs } from "#translate/filters/access-log.ts";
import { parseClusterName, parseGatewayRouteName } from "#translate/names/names.ts";
import { isAttached } from "#translate/policies/attachment.ts";
import { authorizationPoliciesOf } from "#translate/policies/authorization-policies.ts";
import { serviceAddresses } from "#translate/scope/addresses.ts";
import { isClusterLocal } from "#translate/scope/cluster-local.ts";
import { routerServers } from "#translate/scope/gateways.ts";
import { viewsOf } from "#translate/views/views.ts";
import { compareJson, firstOf } from "../../compare.ts";
import type { KubernetesObject } from "../../kubernetes-mesh.ts";
import { recordedProxy } from "../../recorded.ts";
import { dumpedService, type ServiceDump } from "../../recorded-mesh.ts";
import { byRow, leftOut, type RowCheck } from "../../unit-tables.ts";
import { settingsOf, shown, tableMesh, tableNode } from "./table-mesh.ts";

interface Selection {
  readonly WorkloadLabels?: Readonly<Record<string, string>>;
  readonly WorkloadNamespace: string;
  readonly IsWaypoint?: boolean;
}

const WAYPOINTS = "waypoints come with ambient";

const attached: RowCheck = byRow<{
  enableSelectorPolicies: boolean;
  policy: object;
  selection: Selection;
  expected: boolean;
}>(({ enableSelectorPolicies, policy, selection, expected }) => {
  const { WorkloadLabels: labels = {}, WorkloadNamespace: namespace, IsWaypoint } = selection;
  if (IsWaypoint === true) return { leftOut: WAYPOINTS };
  const { $type: _, ...spec } = policy as Readonly<Record<string, unknown>>;
  const metadata = { name: "policy", namespace, labels: {}, annotations: {}, createdAt: 0 };
  const object = { kind: "AuthorizationPolicy", metadata, spec, origin: undefined };
  const features = { gatewaySelectors: enableSelectorPolicies };
  return compareJson(
    isAttached(object as ConfigObject<AuthorizationPolicy>, { namespace, labels }, features),
    expected,
  );
});

interface Listed {
  readonly Name: string;
  readonly Namespace: string;
}

const ACTIONS = { wantAllow: "ALLOW", wantDeny: "DENY", wantAudit: "AUDIT", wantCustom: "CUSTOM" } as const;

const listed: RowCheck = byRow<
  { configs: readonly KubernetesObject[]; selectionOpts: Selection } & Partial<
    Record<keyof typeof ACTIONS, readonly Listed[]>
  >
>((row) => {
  const { WorkloadLabels: labels = {}, WorkloadNamespace: namespace, IsWaypoint } = row.selectionOpts;
  if (IsWaypoint === true) return { leftOut: WAYPOINTS };
  // The root namespace of the test that the table was taken from.
  const snapshot = tableMesh({ configs: row.configs, mesh: { rootNamespace: "istio-config" } });
  const ours = authorizationPoliciesOf(snapshot, { namespace, labels });
  return firstOf(
    Object.entries(ACTIONS).map(([key, action]) => {
      const found = ours.filter(({ spec }) => (spec.action ?? "ALLOW") === action);
      const wanted = row[key as keyof typeof ACTIONS] ?? [];
      return compareJson(
        found.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort(),
        wanted.map(({ Namespace, Name }) => `${Namespace}/${Name}`).sort(),
      );
    }),
  );
});

const merged: RowCheck = byRow<{
  gwConfig: readonly KubernetesObject[];
  serverNum: number;
  mergedServersNum: number;
  serversForRouteNum: Readonly<Record<string, number>>;
}>(({ gwConfig, serverNum, mergedServersNum, serversForRouteNum }) => {
  // They come in order of their age, and without what would tell that they were made of the Gateway API.
  const all = gwConfig.map(({ metadata: { annotations: _, ...metadata }, ...config }, i) => ({
    ...config,
    metadata: { ...metadata, creationTimestamp: new Date(i * 1000).toISOString() },
    spec: { ...("spec" in config ? (config.spec as object) : {}), selector: {} },
  }));
  const snapshot = tableMesh({ configs: all as readonly KubernetesObject[] });
  const { gateway } = viewsOf(snapshot, recordedProxy(tableNode({ type: "router" })));
  if (gateway === undefined) throw new Error("a router without a view of gateways");
  const { ports, byRouteName } = routerServers(gateway);
  const servers = ports.flatMap((port) => port.servers);
  return firstOf([
    compareJson(servers.length, serverNum),
    compareJson(ports.length, mergedServersNum),
    compareJson(Object.fromEntries([...byRouteName].map(([name, of]) => [name, of.length])), serversForRouteNum),
  ]);
});

/** The file that requests are logged to, and how. */
function fileLog(given: Partial<MeshConfig>) {
  const logs = accessLogs({ ...DEFAULT_MESH_CONFIG, accessLogFile: "/dev/stdout", ...given }, "http");
  const { logFormat } = (shown(FileAccessLogSchema, settingsOf(FileAccessLogSchema, logs)) ?? {}) as {
    readonly logFormat?: {
      readonly formatters?: readonly unknown[];
      readonly textFormatSource?: { readonly inlineString: string };
    };
  };
  return logFormat;
}

const addresses: RowCheck = byRow<{
  service: ServiceDump & { readonly AutoAllocatedIPv4Address?: string; readonly AutoAllocatedIPv6Address?: string };
  ipMode: 1 | 2 | 3;
  dualStackEnabled: boolean;
  autoAllocationEnabled: boolean;
  ambientEnabled: boolean;
  expectedAddresses: readonly string[];
}>((row) => {
  if (row.ambientEnabled) return { leftOut: "ambient comes later" };
  const { service } = row;
  const [own = []] = Object.values(service.ClusterVIPs?.Addresses ?? {});
  const { AutoAllocatedIPv4Address: autoAddress, AutoAllocatedIPv6Address: autoAddress6 } = service;
  const ours = {
    ...dumpedService(service),
    registry: "Kubernetes" as const,
    addresses: own,
    autoAddress,
    ...(autoAddress6 && { autoAddress6 }),
  };
  const ipMode = ({ 1: "ipv4", 2: "ipv6", 3: "dual" } as const)[row.ipMode];
  const traits = { ipMode, dualStack: row.dualStackEnabled, autoAddresses: row.autoAllocationEnabled };
  return compareJson(serviceAddresses(ours, traits), row.expectedAddresses);
});

const clusterLocal: RowCheck = byRow<{ host: string; m: object; expected: boolean }>(({ host, m, expected }) => {
  const { serviceSettings } = (parse(meshConfigSchema, m, "").value ?? {}) as Partial<MeshConfig>;
  const mesh = { ...DEFAULT_MESH_CONFIG, ...(serviceSettings && { serviceSettings }) };
  return compareJson(isClusterLocal({ mesh, features: DEFAULT_FEATURES }, { hostname: host }), expected);
});

const effectiveProxyConfig: RowCheck = byRow<{
  configs?: readonly (KubernetesObject & { readonly spec: object })[];
  defaultConfig?: Layer;
  proxy: {
    readonly Namespace: string;
    readonly Labels?: Readonly<Record<string, string>>;
    readonly Annotations?: Readonly<Record<string, string>>;
  };
  expected: Readonly<Record<string, unknown>>;
}>(({ configs = [], defaultConfig = {}, proxy, expected }) => {
  const objects = configs.map(({ metadata, spec }) => ({ namespace: metadata.namespace ?? "", spec }));
  const target = {
    namespace: proxy.Namespace,
    labels: proxy.Labels ?? {},
    annotation: proxy.Annotations?.["proxy.istio.io/config"],
  };
  return compareJson(proxyConfigOf(target, { defaultConfig, rootNamespace: "istio-system", objects }), expected);
});

type Fields = Readonly<Record<string, unknown>>;

const overlaidProxyConfig: RowCheck = byRow<{ first?: Fields; second: Fields; expected: object }>((row) =>
  compareJson(overlayProxyConfig(overlayProxyConfig({}, row.second, ignored), row.first ?? {}, ignored), row.expected),
);

function ignored(): void {
  // Problems of the data are not what is compared.
}

const node: RowCheck = byRow<{ metadata?: object; out: { readonly Metadata: { readonly Labels?: object } } }>((row) => {
  const bytes = toBinary(
    NodeSchema,
    create(NodeSchema, { id: "sidecar~1.1.1.1~id~domain", metadata: { ...row.metadata } }),
  );
  const { value } = parseProxyNode(bytes);
  const wanted = { id: "id", dnsDomain: "domain", type: "sidecar", addresses: ["1.1.1.1"] };
  const ours = value && { id: value.id, dnsDomain: value.dnsDomain, type: value.type, addresses: value.addresses };
  return firstOf([compareJson(ours, wanted), compareJson(value?.labels, row.out.Metadata.Labels ?? {})]);
});

const nodeId: RowCheck = byRow<{
  in: {
    readonly ID: string;
    readonly DNSDomain: string;
    readonly IPAddresses: readonly string[];
    readonly Type: string;
  };
  out: string;
}>(({ in: given, out }) => {
  const metadata = { INSTANCE_IPS: given.IPAddresses.join(",") };
  const { value } = parseProxyNode(toBinary(NodeSchema, create(NodeSchema, { id: out, metadata })));
  const ours = value && [value.id, value.dnsDomain, value.addresses, value.type];
  return compareJson(ours, [given.ID, given.DNSDomain, given.IPAddresses, given.Type]);
});

export const policyAndNameFunctions: Readonly<Record<string, RowCheck>> = {
  "PolicyMatcher.ShouldAttachPolicy": attached,
  "ListAuthorizationPolicies(selection)": listed,
  MergeGateways: merged,
  "cluster-local hosts": clusterLocal,
  "Service.getAllAddressesForProxy": addresses,
  accessLogTextFormatters: byRow<{ text: string; expected: readonly unknown[] }>(({ text, expected }) =>
    compareJson(fileLog({ accessLogFormat: text })?.formatters ?? [], expected),
  ),
  accessLogJSONFormatters: byRow<{ json: object; expected: readonly unknown[] }>(({ json, expected }) => {
    const given = { accessLogEncoding: "JSON" as const, accessLogFormat: JSON.stringify(json) };
    return compareJson(fileLog(given)?.formatters ?? [], expected);
  }),
  "text access log format": byRow<{ formatString: string; expected: string }>(({ formatString, expected }) =>
    compareJson(fileLog({ accessLogFormat: formatString })?.textFormatSource?.inlineString, expected),
  ),
  EffectiveProxyConfig: effectiveProxyConfig,
  "mergeWithPrecedence(ProxyConfig CR ...)": overlaidProxyConfig,
  "ParseMetadata(xDS node metadata struct)": node,
  "Proxy.ServiceNode / ParseServiceNodeWithMetadata": nodeId,
  ParseGatewayRDSRouteName: byRow<{
    args: { readonly name: string };
    wantGateway: string;
    wantPortName: string;
    wantPortNumber: number;
  }>(({ args, wantGateway: gateway, wantPortName: portName, wantPortNumber: port }) =>
    compareJson(parseGatewayRouteName(args.name), { port, portName, gateway }),
  ),
  ParseSubsetKeyHostname: byRow<{ in: string; out: string }>(({ in: name, out }) =>
    compareJson(parseClusterName(name)?.hostname ?? "", out),
  ),
  IsValidSubsetKey: byRow<{ subsetkey: string; expectErr: boolean }>(({ subsetkey, expectErr }) =>
    compareJson(parseClusterName(subsetkey) === undefined, expectErr),
  ),
  "access log proto from extension provider": leftOut(
    "providers of logs are chosen by Telemetry, which has no effect yet",
  ),
  ParseIstioVersion: leftOut("versions of proxies are only compared as text, with the patterns of EnvoyFilters"),
  compareJWKSResponse: byRow<{ args: { oldKeyString: string; newKeyString: string }; want: boolean }>(
    ({ args: { oldKeyString, newKeyString }, want }) => compareJson(!isSameKeySet(oldKeyString, newKeyString), want),
  ),
  mergeMetrics: leftOut("Telemetry has no effect yet"),
  "WasmPlugin.MatchListener": leftOut("WasmPlugin has no effect yet"),
  "WasmPlugin fail strategy": leftOut("WasmPlugin has no effect yet"),
  buildVMConfig: leftOut("WasmPlugin has no effect yet"),
  toSecretResourceName: leftOut("WasmPlugin has no effect yet"),
};
