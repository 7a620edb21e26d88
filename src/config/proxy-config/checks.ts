/** What must hold for a proxy's configuration, wherever its parts come from: what Istio's agent and control plane ask of it. */
import { isIPv4 } from "node:net";
import { parseDuration } from "@mizzen/go-text/duration";
import { checkFqdn } from "../checks/names.ts";
import type { ProxyConfig, TlsSettings } from "./proxy-config.ts";
import type { Report } from "./schema.ts";

/** Reports all that is wrong. */
export function checkProxyConfig(config: ProxyConfig, report: Report): void {
  for (const field of ["configPath", "binaryPath", "discoveryAddress"] as const) {
    if ((config[field] ?? "") === "") report(field, "must not be empty");
  }
  if ((config.serviceCluster ?? "") === "" && config.tracingServiceName === undefined) {
    report("serviceCluster", "must not be empty unless tracingServiceName is set");
  }
  const drainMs = parseDuration(config.drainDuration ?? "0s") ?? 0;
  if (drainMs < 1000 || drainMs % 1000 !== 0) {
    report("drainDuration", `must be whole seconds and at least 1s, not "${config.drainDuration}"`);
  }
  if (Number(parseDuration(config.terminationDrainDuration ?? "0s")) < 0)
    report("terminationDrainDuration", "must not be negative");
  for (const field of ["proxyAdminPort", "statusPort"] as const) {
    const port = config[field] ?? 0;
    if (!isPort(port)) report(field, `must be a port from 1 to 65535, not ${port}`);
  }
  for (const [field, address] of addressesOf(config)) {
    if (!isHostPort(address)) report(field, `must be host:port, not ${JSON.stringify(address)}`);
  }
  checkTracing(config, report);
  checkKeyProvider(config, report);
}

/** Whether a number is that of a port. */
export function isPort(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= 65_535;
}

function addressesOf({ tracing, ...config }: ProxyConfig): (readonly [field: string, address: string])[] {
  // Filled in later, by an address.
  const filled = (address = "") => address.replace("$(HOST_IP)", "127.0.0.1");
  const addresses: readonly (readonly [string, string | undefined])[] = [
    ["discoveryAddress", config.discoveryAddress],
    ["envoyMetricsServiceAddress", config.envoyMetricsServiceAddress],
    ["envoyMetricsService.address", config.envoyMetricsService?.address],
    ["envoyAccessLogService.address", config.envoyAccessLogService?.address],
    ["tracing.zipkin.address", tracing?.zipkin && filled(tracing.zipkin.address)],
    ["tracing.lightstep.address", tracing?.lightstep && (tracing.lightstep.address ?? "")],
    ["tracing.datadog.address", tracing?.datadog && filled(tracing.datadog.address)],
  ];
  return addresses.flatMap(([field, address]) => (address === undefined ? [] : [[field, address] as const]));
}

/** A name or address and a port. */
function isHostPort(address: string): boolean {
  const [, literal, name = "", port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/]+)):(\d+)$/.exec(address) ?? [];
  if (!isPort(Number(port))) return false;
  return literal !== undefined || isIPv4(name) || [...checkFqdn(name, "")].length === 0;
}

function checkTracing({ tracing }: ProxyConfig, report: Report): void {
  if (tracing?.lightstep !== undefined && (tracing.lightstep.accessToken ?? "") === "")
    report("tracing.lightstep.accessToken", "must not be empty");
  for (const problem of tlsProblems(tracing?.tlsSettings ?? {})) report("tracing.tlsSettings", problem);
}

function* tlsProblems(settings: TlsSettings): Iterable<string> {
  const { mode, clientCertificate, privateKey, caCertificates, caCrl, credentialName, subjectAltNames } = settings;
  if (credentialName?.startsWith("configmap://"))
    yield "may not name a ConfigMap as credentialName: there is no namespace that it could be in";
  const unverified = settings.insecureSkipVerify === true && (mode === "SIMPLE" || mode === "MUTUAL");
  const verifiedBy = caCertificates ?? subjectAltNames ?? (mode === "SIMPLE" ? credentialName : undefined);
  if (unverified && verifiedBy !== undefined)
    yield "may not say by what servers are verified when insecureSkipVerify is set";
  if ((mode === "SIMPLE" || mode === "MUTUAL") && credentialName !== undefined) {
    if ((clientCertificate ?? caCertificates ?? privateKey ?? caCrl) !== undefined)
      yield "may not have files of certificates beside credentialName";
    return;
  }
  if (mode === "MUTUAL" && clientCertificate === undefined) yield "needs clientCertificate for mode MUTUAL";
  if (mode === "MUTUAL" && privateKey === undefined) yield "needs privateKey for mode MUTUAL";
}

function checkKeyProvider({ privateKeyProvider }: ProxyConfig, report: Report): void {
  if (privateKeyProvider === undefined) return;
  const providers = Object.entries(privateKeyProvider);
  if (providers.length === 0) report("privateKeyProvider", "must be cryptomb or qat");
  for (const [name, { pollDelay }] of providers) {
    if (Math.trunc(1e6 * Number(parseDuration(pollDelay ?? "0s"))) === 0)
      report(`privateKeyProvider.${name}.pollDelay`, "must be set, and other than 0");
  }
}
