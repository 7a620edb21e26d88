import { checkSelector } from "../../checks/labels.ts";
import { checkDnsLabel, checkFqdn, isPartialWildcard, wrongHost } from "../../checks/names.ts";
import { checkIpAddress, checkPort, checkUnixPath, UNIX_PREFIX } from "../../checks/network.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem, warning } from "../../schema/problem.ts";
import { isHttp, isTls, PROTOCOL_NAMES, parseProtocol } from "../../terms/protocol.ts";
import { checkConnectionPool } from "../destination-rule/check-traffic-policy.ts";
import { checkServerTls } from "../gateway/check-server-tls.ts";
import { checkDestination } from "../virtual-service/check-destinations.ts";
import type { Sidecar, SidecarEgress, SidecarIngress, SidecarPort } from "./schema.ts";

/** Addresses at which a workload can be reached by its own proxy. */
const OWN_ADDRESSES: readonly string[] = ["", "127.0.0.1", "0.0.0.0", "::1", "::"];

/** Checks a Sidecar. */
export function* checkSidecar({ spec, metadata }: ConfigObject<Sidecar>): Iterable<Problem> {
  const { workloadSelector, ingress = [], egress = [], inboundConnectionPool, outboundTrafficPolicy } = spec;
  if (workloadSelector !== undefined) yield* checkSelector(workloadSelector.labels, "spec.workloadSelector.labels");
  if (ingress.length + egress.length === 0 && !inboundConnectionPool && !outboundTrafficPolicy) {
    yield error("spec", "needs at least one of ingress, egress, inboundConnectionPool and outboundTrafficPolicy");
  }
  yield* checkIngress(ingress);
  yield* checkConnectionPool(inboundConnectionPool, "spec.inboundConnectionPool");
  yield* checkEgress(egress, metadata.namespace);
  if (outboundTrafficPolicy?.egressProxy !== undefined) yield* checkEgressProxy(outboundTrafficPolicy);
}

function* checkIngress(listeners: readonly SidecarIngress[]): Iterable<Problem> {
  const ports = new Set<number>();
  for (const [i, listener] of listeners.entries()) {
    const at = `spec.ingress[${i}]`;
    const { port, bind = "", defaultEndpoint = "", connectionPool } = listener;
    const { number = 0 } = port;
    yield* checkSidecarPort(port, `${at}.port`);
    yield* checkPort(number, `${at}.port.number`);
    if (bind !== "") yield* checkIpAddress(bind, `${at}.bind`);
    if (ports.has(number)) yield error(`${at}.port.number`, `is there twice: ${number}`);
    ports.add(number);
    if (defaultEndpoint !== "") yield* checkDefaultEndpoint(defaultEndpoint, `${at}.defaultEndpoint`);
    yield* checkIngressTls(listener, at);
    yield* checkConnectionPool(connectionPool, `${at}.connectionPool`);
    if (connectionPool?.http !== undefined && !isHttp(parseProtocol(port.protocol ?? ""))) {
      yield warning(`${at}.connectionPool.http`, `has no effect on a port of protocol ${port.protocol}`);
    }
  }
}

function* checkDefaultEndpoint(endpoint: string, at: string): Iterable<Problem> {
  if (endpoint.startsWith(UNIX_PREFIX)) {
    yield* checkUnixPath(endpoint.slice(UNIX_PREFIX.length), at);
    return;
  }
  const [, bracketed, plain, port = ""] = /^(?:\[(.*)\]|([^:]*)):(\d*)$/.exec(endpoint) ?? [];
  if (!OWN_ADDRESSES.includes(bracketed ?? plain ?? "none") || port === "") {
    yield error(
      at,
      `must be one of 127.0.0.1:PORT, 0.0.0.0:PORT, [::1]:PORT, [::]:PORT, unix://PATH, not "${endpoint}"`,
    );
  } else yield* checkPort(Number(port), at);
}

function* checkIngressTls({ tls, port }: SidecarIngress, at: string): Iterable<Problem> {
  if (tls === undefined) return;
  const { mode = "PASSTHROUGH", subjectAltNames = [], credentialNames = [], tlsCertificates = [] } = tls;
  const refused = {
    subjectAltNames: subjectAltNames.length > 0,
    httpsRedirect: tls.httpsRedirect === true,
    credentialName: (tls.credentialName ?? "") !== "",
    credentialNames: credentialNames.length > 0,
    tlsCertificates: tlsCertificates.length > 0,
    mode: mode === "ISTIO_MUTUAL" || mode === "AUTO_PASSTHROUGH",
  };
  for (const [name, isSet] of Object.entries(refused)) {
    if (isSet) yield error(`${at}.tls.${name}`, name === "mode" ? `cannot be ${mode} here` : "cannot be set here");
  }
  if (!isTls(parseProtocol(port.protocol ?? ""))) {
    yield error(`${at}.tls`, `needs a port of protocol HTTPS or TLS, not ${port.protocol}`);
  }
  yield* checkServerTls(tls, `${at}.tls`);
}

function* checkEgress(listeners: readonly SidecarEgress[], namespace: string): Iterable<Problem> {
  const taken = new Set<number | string>();
  for (const [i, listener] of listeners.entries()) {
    const at = `spec.egress[${i}]`;
    const { port, bind = "", hosts } = listener;
    if (port === undefined) {
      if (i < listeners.length - 1) yield error(at, "has no port: only the last listener may be for all other ports");
    } else {
      yield* checkEgressPort(listener, port, at);
      const place = port.number || bind;
      if (taken.has(place)) yield error(`${at}.port`, `is there twice: ${place}`);
      taken.add(place);
    }
    if (hosts.length === 0) yield error(`${at}.hosts`, "needs at least one host");
    yield* checkEgressHosts(hosts, `${at}.hosts`, namespace);
  }
}

function* checkEgressPort(listener: SidecarEgress, port: SidecarPort, at: string): Iterable<Problem> {
  const { bind = "", captureMode = "DEFAULT" } = listener;
  const { number = 0 } = port;
  yield* checkSidecarPort(port, `${at}.port`);
  if (number !== 0) {
    yield* checkPort(number, `${at}.port.number`);
    if (bind !== "") yield* checkIpAddress(bind, `${at}.bind`);
    return;
  }
  if (bind.startsWith(UNIX_PREFIX)) yield* checkUnixPath(bind.slice(UNIX_PREFIX.length), `${at}.bind`);
  else yield error(`${at}.port.number`, "is required, unless bind is a socket file (unix://PATH)");
  if (captureMode === "IPTABLES") yield error(`${at}.captureMode`, "cannot be IPTABLES for a socket file");
}

function* checkSidecarPort({ name = "", protocol = "", targetPort = 0 }: SidecarPort, at: string): Iterable<Problem> {
  if (name !== "") yield* checkDnsLabel(name, `${at}.name`);
  if (protocol !== "" && parseProtocol(protocol) === "Unsupported") {
    yield error(`${at}.protocol`, `must be one of ${PROTOCOL_NAMES.join(", ")}, not "${protocol}"`);
  }
  if (targetPort > 0) yield error(`${at}.targetPort`, "has no meaning for sidecars");
}

function wrongEgressHost(host: string): string | undefined {
  if (host !== "*" && !host.includes(".")) return `must have a complete host name, not "${host}"`;
  return isPartialWildcard(host) ? `must have a wildcard as a whole label only, not "${host}"` : wrongHost(host);
}

function* checkEgressHosts(hosts: readonly string[], at: string, own: string): Iterable<Problem> {
  const seen = new Map<string, Set<string>>();
  for (const [i, reference] of hosts.entries()) {
    const field = `${at}[${i}]`;
    const [, written, host = ""] = /^([^/]*)\/(.*)$/s.exec(reference) ?? [];
    if (written === undefined) {
      yield error(field, `must be "namespace/host", not "${reference}"`);
      continue;
    }
    const namespace = written === "." ? own : written;
    const others = seen.get(namespace) ?? new Set();
    if (host === "*" ? others.size > 0 : others.has(host) || others.has("*")) {
      yield warning(field, `is there twice: "${reference}"`);
    }
    seen.set(namespace, others.add(host));
    if (!["*", ".", "~"].includes(written)) yield* checkDnsLabel(written, field);
    const wrong = wrongEgressHost(host);
    if (wrong !== undefined) yield error(field, wrong);
  }
  if (seen.get("*")?.has("*") && seen.size > 1)
    yield warning(at, "has */*, which is all there is: others have no effect");
}

function* checkEgressProxy(policy: NonNullable<Sidecar["outboundTrafficPolicy"]>): Iterable<Problem> {
  const at = "spec.outboundTrafficPolicy.egressProxy";
  const { mode = "REGISTRY_ONLY", egressProxy } = policy;
  if (egressProxy === undefined) return;
  if (mode !== "ALLOW_ANY") {
    yield error(at, "needs mode ALLOW_ANY");
    return;
  }
  yield* checkFqdn(egressProxy.host, `${at}.host`);
  if (egressProxy.port === undefined) yield error(`${at}.port`, "is required");
  else yield* checkDestination(egressProxy, at);
}
