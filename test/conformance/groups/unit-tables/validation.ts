/**
 * Tables about parts of configuration: what Istio says to a part, ours says to a whole object that has it. Rows tell only
 * whether a part is accepted.
 */
import { checkFqdn, checkHost } from "#config/checks/names.ts";
import { checkIpAddress, checkSubnet } from "#config/checks/network.ts";
import { parseObject } from "#config/kinds/parse-object.ts";
import { meshConfigOf } from "#config/mesh/mesh-config.ts";
import { meshNetworksOf } from "#config/mesh/mesh-networks.ts";
import type { Problem } from "#config/schema/problem.ts";
import { hostsMatch, isSubsetOf } from "#config/terms/host.ts";
import { bySpecificity, hostsForNamespace, intersectHosts } from "#translate/names/hosts.ts";
import { compareJson } from "../../compare.ts";
import type { Outcome } from "../../harness.ts";
import { byRow, leftOut, type RowCheck, unitTables } from "../../unit-tables.ts";
import { protocolOf } from "./services.ts";

const NETWORKING = "networking.istio.io/v1";
const ENTRY = { hosts: ["foo.com"], resolution: "DNS" };
const ROUTE = [{ destination: { host: "a.default.svc.cluster.local" } }];

function accepts(problems: Iterable<Problem>): boolean {
  return [...problems].every(({ severity }) => severity !== "error");
}

function acceptsObject(kind: string, spec: object, namespace = "default"): boolean {
  return accepts(parseObject({ apiVersion: NETWORKING, kind, metadata: { name: "a", namespace }, spec }).problems);
}

const acceptsRoute = (route: object) => acceptsObject("VirtualService", { hosts: ["foo.com"], http: [route] });
const acceptsDelegate = (route: object) => acceptsObject("VirtualService", { http: [route] });
const acceptsPolicy = (trafficPolicy: object) => acceptsObject("DestinationRule", { host: "foo.com", trafficPolicy });
/** The data leaves out numbers that are 0. */
function acceptsServer(server: object): boolean {
  const { port, ...rest } = { port: {}, ...server };
  return acceptsObject("Gateway", { servers: [{ ...rest, port: { number: 0, ...port } }] });
}
const acceptsProvider = (provider: object) =>
  // A provider that is wrong is a warning in a mesh config, with Istio too.
  meshConfigOf({ extensionProviders: [{ name: "own", ...provider }] }).problems.length === 0;

/** Rows whose part is `in`, if there is one: nothing at all is always accepted. */
function part(check: (given: object) => boolean): RowCheck {
  return byRow<{ in?: object; valid?: boolean }>(({ in: given, valid }) =>
    compareJson(given === undefined || check(given), valid === true),
  );
}

/** Rows of Gateways, which expect a text in the error, or none. */
function refusal(check: (row: { readonly in: object; readonly bind?: string }) => boolean): RowCheck {
  return byRow<{ in: object; bind?: string; out: string }>((row) => compareJson(check(row), row.out === ""));
}

function provider(name: string): RowCheck {
  return byRow<{ provider?: object; config?: object; valid?: boolean }>(
    ({ provider: given, config, valid }): Outcome =>
      compareJson(acceptsProvider({ [name]: given ?? config ?? {} }), valid === true),
  );
}

function meshField(name: string): RowCheck {
  return byRow<{ duration: string; isValid?: boolean }>(({ duration, isValid }) =>
    compareJson(accepts(meshConfigOf({ [name]: duration }).problems), isValid === true),
  );
}

const routeParts: Readonly<Record<string, RowCheck>> = {
  ValidateCORSPolicy: part((corsPolicy) => acceptsRoute({ route: ROUTE, corsPolicy })),
  ValidateHTTPFaultInjectionAbort: part((abort) => acceptsRoute({ route: ROUTE, fault: { abort } })),
  ValidateHTTPFaultInjectionDelay: part((delay) => acceptsRoute({ route: ROUTE, fault: { delay } })),
  ValidateHTTPRetry: part((retries) => acceptsRoute({ route: ROUTE, retries })),
  ValidateChainingVirtualService: part((spec) => acceptsObject("VirtualService", withoutType(spec))),
  ValidateHTTPStatus: byRow<{ in: number; valid: boolean }>(({ in: httpStatus, valid }) =>
    compareJson(acceptsRoute({ route: ROUTE, fault: { abort: { httpStatus, percentage: { value: 1 } } } }), valid),
  ),
  ValidateHTTPRedirect: byRow<{ redirect?: object; valid: boolean }>(({ redirect, valid }) =>
    compareJson(redirect === undefined || acceptsRoute({ redirect }), valid),
  ),
  ValidateHTTPRewrite: byRow<{ in?: object; valid: boolean }>(({ in: rewrite, valid }) =>
    compareJson(rewrite === undefined || acceptsRoute({ route: ROUTE, rewrite }), valid),
  ),
  ValidateUriRegexRewrite: byRow<{ in?: object; valid: boolean }>(({ in: uriRegexRewrite, valid }) =>
    compareJson(uriRegexRewrite === undefined || acceptsRoute({ route: ROUTE, rewrite: { uriRegexRewrite } }), valid),
  ),
  ValidateDestination: byRow<{ destination: object; valid: boolean }>(({ destination, valid }) =>
    compareJson(acceptsRoute({ route: [{ destination }] }), valid),
  ),
  ValidateRouteDestination: byRow<{ routes: object[]; valid: boolean }>(({ routes, valid }) =>
    compareJson(acceptsRoute({ route: routes }), valid),
  ),
  ValidateHTTPRoute: byRow<{ route: object; valid: boolean }>(({ route, valid }) =>
    compareJson(acceptsRoute(route), valid),
  ),
  ValidateRootHTTPRoute: byRow<{ route: object; valid: boolean }>(({ route, valid }) =>
    compareJson(acceptsRoute(route), valid),
  ),
  ValidateDelegateHTTPRoute: byRow<{ route: object; valid: boolean }>(({ route, valid }) =>
    compareJson(acceptsDelegate(route), valid),
  ),
  ValidateDuration: byRow<{ duration: string; isValid: boolean }>(({ duration: timeout, isValid }) =>
    compareJson(acceptsRoute({ route: ROUTE, timeout }), isValid),
  ),
  ValidateHTTPHeaderValue: byRow<{ input: string; expected?: object }>(({ input, expected }) =>
    compareJson(acceptsRoute({ route: ROUTE, headers: { request: { set: { a: input } } } }), expected === undefined),
  ),
  StrictValidateHTTPHeaderName: byRow<{ name: string; valid: boolean }>(({ name, valid }) =>
    compareJson(acceptsRoute({ route: ROUTE, headers: { request: { set: { [name]: "a" } } } }), valid),
  ),
  ValidateHTTPHeaderName: byRow<{ name: string; valid: boolean }>(({ name, valid }) =>
    compareJson(acceptsRoute({ route: ROUTE, match: [{ headers: { [name]: { exact: "a" } } }] }), valid),
  ),
};

const policyParts: Readonly<Record<string, RowCheck>> = {
  ValidateLocalities: byRow<{ localities: string[]; valid: boolean }>(({ localities, valid }) => {
    const distribute = [{ from: "x/y", to: shares(localities) }];
    return compareJson(acceptsPolicy({ loadBalancer: { localityLbSetting: { distribute } } }), valid);
  }),
  ValidateConnectionPool: part((connectionPool) => acceptsPolicy({ connectionPool })),
  ValidateLoadBalancer: part((loadBalancer) => acceptsPolicy({ loadBalancer })),
  ValidateOutlierDetection: part((outlierDetection) => acceptsPolicy({ outlierDetection })),
  ValidateTrafficPolicy: part((trafficPolicy) => acceptsPolicy(trafficPolicy)),
  ValidateTLS: byRow<{ tls?: object; valid?: boolean }>(({ tls, valid }) =>
    compareJson(tls === undefined || acceptsPolicy({ tls }), valid === true),
  ),
  ValidateLocalityLbSetting: byRow<{ in?: object; outlier?: object; err: boolean }>(
    ({ in: localityLbSetting, outlier: outlierDetection, err }) =>
      compareJson(acceptsPolicy({ loadBalancer: { localityLbSetting }, outlierDetection }), !err),
  ),
};

const gatewayParts: Readonly<Record<string, RowCheck>> = {
  ValidateServer: refusal(({ in: server }) => acceptsServer(server)),
  ValidateServerPort: refusal(({ in: port, bind }) =>
    acceptsServer({ hosts: ["foo.com"], port, ...(bind && { bind }) }),
  ),
  ValidatePortName: byRow<{ name: string; valid: boolean }>(({ name, valid }) =>
    compareJson(acceptsObject("ServiceEntry", { ...ENTRY, ports: [{ number: 80, name, protocol: "HTTP" }] }), valid),
  ),
  ValidateWildcardDomainForVirtualServiceBoundToGateway: byRow<{ in: string; sni: boolean; out: string }>(
    ({ in: host, sni, out }) => compareJson(sni ? acceptsBoundHost(host) : accepts(checkHost(host, "")), out === ""),
  ),
  ValidateTlsOptions: refusal(({ in: tls }) => {
    const port = { number: 443, name: "https", protocol: "HTTPS" };
    return acceptsServer({ hosts: ["foo.com"], port, tls });
  }),
};

/** Of a proxy config what is written is checked; what is not written has a default. */
const acceptsProxy = (defaultConfig: object) => accepts(meshConfigOf({ defaultConfig }).problems);
const HAVE_DEFAULTS = ["configPath", "binaryPath", "proxyAdminPort"];

const proxyParts: Readonly<Record<string, RowCheck>> = {
  ValidateMeshConfigProxyConfig: byRow<{ in: object; isValid: boolean }>(({ in: proxy, isValid }) =>
    HAVE_DEFAULTS.every((name) => Object.hasOwn(proxy, name))
      ? compareJson(acceptsProxy(proxy), isValid)
      : { leftOut: "what a proxy config leaves out has a default here, as it has once Istio has merged it" },
  ),
  ValidateDrainDuration: byRow<{ Drain: string; Valid: boolean }>(({ Drain: drainDuration, Valid }) =>
    compareJson(acceptsProxy({ drainDuration }), Valid),
  ),
  ValidateControlPlaneAuthPolicy: byRow<{ policy: number; isValid: boolean }>(({ policy, isValid }) =>
    compareJson(acceptsProxy({ controlPlaneAuthPolicy: policy }), isValid),
  ),
};

interface ProtocolRow {
  readonly port: number;
  readonly portName: string;
  readonly proto: string;
  readonly appProto?: string;
  readonly expectedProto: string;
}

/** Weights that are 100 together. */
function shares(localities: readonly string[]): Record<string, number> {
  const rest = 100 - (localities.length - 1);
  return Object.fromEntries(localities.map((locality, i) => [locality, i === 0 ? rest : 1]));
}

/** A server name of TLS at a gateway. */
function acceptsBoundHost(host: string): boolean {
  const tls = [{ match: [{ sniHosts: [host], port: 443 }], route: ROUTE }];
  return acceptsObject("VirtualService", { hosts: [host], gateways: ["gw"], tls });
}

function withoutType(spec: object): object {
  return Object.fromEntries(Object.entries(spec).filter(([name]) => name !== "$type"));
}

interface ExportToRow {
  readonly namespace: string;
  readonly exportTo?: readonly string[];
  readonly isServiceEntry: boolean;
  readonly isDestinationRuleWithSelector: boolean;
  readonly wantErr: boolean;
}

function exported(row: ExportToRow): readonly [kind: string, spec: object] {
  const ports = [{ number: 80, name: "http", protocol: "HTTP" }];
  if (row.isServiceEntry) return ["ServiceEntry", { hosts: ["foo.com"], ports, resolution: "DNS" }];
  const workloadSelector = { matchLabels: { app: "a" } };
  if (row.isDestinationRuleWithSelector) return ["DestinationRule", { host: "foo.com", workloadSelector }];
  return ["VirtualService", { hosts: ["foo.com"], http: [{ route: ROUTE }] }];
}

export const validationTables = unitTables(
  "unit tables: validation",
  ["pkg/config/validation", "pkg/config/host", "pkg/config/kube"],
  {
    ...routeParts,
    ...policyParts,
    ...gatewayParts,
    ...proxyParts,
    ValidateConnectTimeout: meshField("connectTimeout"),
    ValidateProtocolDetectionTimeout: meshField("protocolDetectionTimeout"),
    ValidateExtensionProviderEnvoyHTTPAls: provider("envoyHttpAls"),
    ValidateExtensionProviderEnvoyTCPAls: provider("envoyTcpAls"),
    ValidateExtensionProviderEnvoyOtelAls: provider("envoyOtelAls"),
    ValidateExtensionProviderTracingZipkin: provider("zipkin"),
    ValidateExtensionProviderTracingDatadog: provider("datadog"),
    ValidateExtensionProviderTracingLightstep: provider("lightstep"),
    ValidateExtensionProviderTracingOpentelemetry: provider("opentelemetry"),
    ValidateExtensionProviderService: byRow<{ service: string; valid: boolean }>(({ service, valid }) =>
      compareJson(acceptsProvider({ zipkin: { service, port: 9411 } }), valid),
    ),
    ValidateMeshNetworks: byRow<{ mn: object; valid: boolean }>(({ mn, valid }) =>
      compareJson(accepts(meshNetworksOf(mn).problems), valid),
    ),
    ValidateTrustDomain: byRow<{ in: string; err: string }>(({ in: trustDomain, err }) =>
      compareJson(accepts(meshConfigOf({ trustDomain }).problems), err === ""),
    ),
    ValidateFQDN: byRow<{ fqdn: string; valid: boolean }>(({ fqdn, valid }) =>
      compareJson(accepts(checkFqdn(fqdn, "")), valid),
    ),
    ValidateWildcardDomain: byRow<{ in: string; out: string }>(({ in: host, out }) =>
      compareJson(accepts(checkHost(host, "")), out === ""),
    ),
    ValidationIPAddress: byRow<{ addr: string; ok: boolean }>(({ addr, ok }) =>
      compareJson(accepts(checkIpAddress(addr, "")), ok),
    ),
    ValidationIPSubnet: byRow<{ subnet: string; ok: boolean }>(({ subnet, ok }) =>
      compareJson(accepts(checkSubnet(subnet, "")), ok),
    ),
    "host.Name.Matches": byRow<{ a: string; b: string; out: boolean }>(({ a, b, out }) =>
      compareJson(hostsMatch(a, b), out),
    ),
    "host.Name.SubsetOf": byRow<{ a: string; b: string; out: boolean }>(({ a, b, out }) =>
      compareJson(isSubsetOf(a, b), out),
    ),
    validateExportTo: byRow<ExportToRow>((row) => {
      const { exportTo, namespace, wantErr } = row;
      const [kind, spec] = exported(row);
      return compareJson(acceptsObject(kind, { ...spec, ...(exportTo && { exportTo }) }, namespace), !wantErr);
    }),
    "host.Names.Intersection": byRow<{ a: string[]; b: string[]; intersection: string[] }>(({ a, b, intersection }) =>
      compareJson(intersectHosts(a, b), intersection),
    ),
    "host.MoreSpecific": byRow<{ host1: string; host2: string; expected: boolean }>(({ host1, host2, expected }) =>
      compareJson(bySpecificity(host1, host2) < 0, expected),
    ),
    "sort of host.Names": byRow<{ in: string[]; want: string[] }>(({ in: hosts, want }) =>
      compareJson(hosts.toSorted(bySpecificity), want),
    ),
    "host.NamesForNamespace": byRow<{ hosts: string[]; namespace: string; want: string[] }>(
      ({ hosts, namespace, want }) => compareJson(hostsForNamespace(hosts, namespace), want),
    ),
    "kube.ConvertProtocol(port, portName, proto, appProto)": byRow<ProtocolRow>(
      ({ port, portName, proto, appProto, expectedProto }) => {
        const declared = { ...(portName && { name: portName }), ...(appProto && { appProtocol: appProto }) };
        // A Service has no port 0; which other it is does not matter then.
        const ours = protocolOf({ port: port || 8888, ...declared, ...(proto && { protocol: proto }) });
        return compareJson(ours === "Unsupported" ? "UnsupportedProtocol" : ours, expectedProto);
      },
    ),
    ValidateTelemetryFilter: leftOut("Telemetry has no effect yet"),
  },
);
