import { isIP } from "node:net";
import { checkDuration } from "../checks/amounts.ts";
import { checkFqdn, checkHost, isDnsLabel } from "../checks/names.ts";
import { checkPort } from "../checks/network.ts";
import { checkClientTls } from "../kinds/destination-rule/check-client-tls.ts";
import { checkLocalityLb } from "../kinds/destination-rule/check-locality-lb.ts";
import { checkCurves } from "../kinds/gateway/check-server-tls.ts";
import { formatField } from "../schema/field-path.ts";
import { error, type Problem, warning } from "../schema/problem.ts";
import { checkExtensionProviders } from "./check-extension-provider.ts";
import type { MeshConfigFields } from "./mesh-schema.ts";
import type { ProxyDefaults } from "./proxy-defaults.ts";

const HOUR_MS = 3_600_000;
/** Envoy takes only what is longer. */
const SHORTEST_REFRESH_MS = 1;
const OUTBOUND_PORT = 15001;
const INBOUND_PORT = 15006;
const NO_PORT = 0;
/** Replaced by the agent where it runs. */
const HOST_IP = "$(HOST_IP)";

/** Checks a mesh config. */
export function* checkMeshConfig(mesh: MeshConfigFields): Iterable<Problem> {
  if (mesh.proxyListenPort !== undefined) yield* checkPort(mesh.proxyListenPort, "proxyListenPort");
  if (mesh.proxyInboundListenPort !== undefined)
    yield* checkPort(mesh.proxyInboundListenPort, "proxyInboundListenPort");
  if ((mesh.proxyListenPort ?? OUTBOUND_PORT) === (mesh.proxyInboundListenPort ?? INBOUND_PORT)) {
    yield error("proxyInboundListenPort", "must differ from proxyListenPort");
  }
  if ((mesh.proxyHttpPort ?? NO_PORT) !== NO_PORT) yield* checkPort(mesh.proxyHttpPort ?? NO_PORT, "proxyHttpPort");
  yield* checkDuration(mesh.connectTimeout, "connectTimeout");
  if ((mesh.connectTimeout ?? 0) > HOUR_MS) yield error("connectTimeout", "must be at most 1h");
  if ((mesh.protocolDetectionTimeout ?? 0) !== 0) {
    yield* checkDuration(mesh.protocolDetectionTimeout, "protocolDetectionTimeout");
  }
  for (const name of ["time", "interval"] as const) {
    if ((mesh.tcpKeepalive?.[name] ?? 0) < 0) yield error(`tcpKeepalive.${name}`, "must not be negative");
  }
  if (mesh.dnsRefreshRate !== undefined && mesh.dnsRefreshRate <= SHORTEST_REFRESH_MS) {
    yield warning("dnsRefreshRate", "has no effect: it must be more than 1ms");
  }
  if (mesh.trustDomain !== undefined) yield* checkTrustDomain(mesh.trustDomain, "trustDomain");
  for (const [i, alias] of (mesh.trustDomainAliases ?? []).entries()) {
    yield* checkTrustDomain(alias, `trustDomainAliases[${i}]`);
  }
  yield* checkLocalityLb(mesh.localityLbSetting, "localityLbSetting", {});
  for (const [i, { hosts = [] }] of (mesh.serviceSettings ?? []).entries()) {
    for (const [j, host] of hosts.entries()) yield* checkHost(host, `serviceSettings[${i}].hosts[${j}]`);
  }
  if ((mesh.meshMTLS?.ecdhCurves ?? []).length > 0) {
    yield error("meshMTLS.ecdhCurves", "cannot be set for the mesh's own TLS");
  }
  yield* checkCurves(mesh.tlsDefaults?.ecdhCurves ?? [], "tlsDefaults.ecdhCurves");
  // As with istiod: one that nobody uses does no harm, and what policies of one that is wrong match is denied.
  for (const problem of checkExtensionProviders(mesh.extensionProviders ?? [], "extensionProviders")) {
    yield { ...problem, severity: "warning" };
  }
  if ((mesh.configSources ?? []).length > 0) {
    yield warning("configSources", "has no effect: folders are named by --configDir");
  }
  for (const name of ["tracing", "accessLogging"] as const) {
    if ((mesh.defaultProviders?.[name] ?? []).length > 0) {
      yield warning(`defaultProviders.${name}`, "has no effect yet, as Telemetry has none");
    }
  }
  if (mesh.defaultConfig !== undefined) yield* checkProxyDefaults(mesh.defaultConfig, "defaultConfig");
}

function* checkProxyDefaults(proxy: ProxyDefaults, at: string): Iterable<Problem> {
  for (const name of ["configPath", "binaryPath", "serviceCluster", "discoveryAddress"] as const) {
    if (proxy[name] === "") yield error(`${at}.${name}`, "must not be empty");
  }
  for (const name of ["proxyAdminPort", "statusPort"] as const) {
    const port = proxy[name];
    if (port !== undefined) yield* checkPort(port, `${at}.${name}`);
  }
  yield* checkDuration(proxy.drainDuration, `${at}.drainDuration`);
  if ((proxy.drainDuration ?? 0) % 1000 !== 0) yield error(`${at}.drainDuration`, "must be a whole number of seconds");
  const addresses = {
    discoveryAddress: proxy.discoveryAddress,
    statsdUdpAddress: proxy.statsdUdpAddress,
    envoyMetricsServiceAddress: proxy.envoyMetricsServiceAddress,
    "tracing.zipkin.address": proxy.tracing?.zipkin?.address,
    "tracing.lightstep.address": proxy.tracing?.lightstep?.address,
    "tracing.datadog.address": proxy.tracing?.datadog?.address,
    "envoyAccessLogService.address": proxy.envoyAccessLogService?.address,
    "envoyMetricsService.address": proxy.envoyMetricsService?.address,
  };
  for (const [name, address = ""] of Object.entries(addresses)) {
    if (address !== "") yield* checkHostAndPort(address, `${at}.${name}`);
  }
  if (proxy.controlPlaneAuthPolicy === "INHERIT") {
    yield error(`${at}.controlPlaneAuthPolicy`, "must be NONE or MUTUAL_TLS: there is nothing to inherit from");
  }
  yield* checkTracing(proxy.tracing, `${at}.tracing`);
  yield* checkKeyProvider(proxy.privateKeyProvider, `${at}.privateKeyProvider`);
  if (proxy.proxyMetadata?.ISTIO_META_DNS_AUTO_ALLOCATE !== undefined) {
    yield warning(
      `${at}.proxyMetadata.ISTIO_META_DNS_AUTO_ALLOCATE`,
      "is deprecated: addresses are allocated without it",
    );
  }
}

function* checkTracing(tracing: ProxyDefaults["tracing"], at: string): Iterable<Problem> {
  const { zipkin, lightstep, datadog, tlsSettings, customTags = {} } = tracing ?? {};
  for (const [name, tracer] of Object.entries({ zipkin, lightstep, datadog })) {
    if (tracer !== undefined && !tracer.address) yield error(`${at}.${name}.address`, "is required");
  }
  if (lightstep?.address && !lightstep.accessToken) yield error(`${at}.lightstep.accessToken`, "is required");
  if (tlsSettings !== undefined) yield* checkClientTls(tlsSettings, `${at}.tlsSettings`, "");
  for (const [tag, { literal, environment, header }] of Object.entries(customTags)) {
    const field = formatField(`${at}.customTags`, tag);
    if (literal === undefined && environment === undefined && header === undefined) {
      yield error(field, "needs a literal, an environment or a header");
    } else if (tag === "" || !(literal?.value || environment?.name || header?.name)) {
      yield warning(
        field,
        "has no effect: it needs a name, and the value of a literal or the name of a variable or header",
      );
    }
  }
}

function* checkKeyProvider(provider: ProxyDefaults["privateKeyProvider"], at: string): Iterable<Problem> {
  if (provider === undefined) return;
  const { cryptomb, qat } = provider;
  if (cryptomb === undefined && qat === undefined) yield error(at, "needs cryptomb or qat");
  for (const [name, settings] of Object.entries({ cryptomb, qat })) {
    if (settings !== undefined && !(Number(settings.pollDelay) > 0))
      yield error(`${at}.${name}.pollDelay`, "is required, above 0");
  }
}

function* checkHostAndPort(address: string, at: string): Iterable<Problem> {
  const [, bracketed, plain, port = ""] =
    /^(?:\[([^\]]*)\]|([^:]*)):(\d+)$/.exec(address.replace(HOST_IP, "127.0.0.1")) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined) yield error(at, `must be host:port, not "${address}"`);
  else {
    if (isIP(host) === 0) yield* checkFqdn(host, at);
    yield* checkPort(Number(port), at);
  }
}

function* checkTrustDomain(domain: string, at: string): Iterable<Problem> {
  const labels = domain.replace(/\.$/, "").split(".");
  if (!labels.every(isDnsLabel)) yield error(at, `must be a domain such as cluster.local, not "${domain}"`);
}
