/** What a DestinationRule says about connections to a host, a port or a subset. */
import { isIP } from "node:net";
import { checkDuration, checkNotNegative, checkPercent } from "../../checks/amounts.ts";
import { checkFqdn } from "../../checks/names.ts";
import { checkPort } from "../../checks/network.ts";
import { error, type Problem, warning } from "../../schema/problem.ts";
import { checkClientTls } from "./check-client-tls.ts";
import { checkLocalityLb } from "./check-locality-lb.ts";
import type {
  ConnectionPool,
  ConsistentHash,
  LoadBalancer,
  OutlierDetection,
  PortTrafficPolicy,
  TrafficPolicy,
} from "./schema.ts";

/** Envoy's limit on the size of its Maglev table. */
const MAGLEV_LIMIT = 5_000_011;

/** A policy, and those for single ports in it. */
export function* checkTrafficPolicy(
  policy: TrafficPolicy | undefined,
  at: string,
  namespace: string,
): Iterable<Problem> {
  if (policy === undefined) return;
  const { portLevelSettings = [], ...settings } = policy;
  if (portLevelSettings.length === 0 && Object.keys(settings).length === 0) yield error(at, "must not be empty");
  if (policy.tunnel !== undefined && policy.proxyProtocol !== undefined) {
    yield error(`${at}.proxyProtocol`, "cannot be set together with tunnel");
  }
  yield* checkSettings(policy, at, namespace);
  for (const [i, ofPort] of portLevelSettings.entries()) {
    const field = `${at}.portLevelSettings[${i}]`;
    const { port, ...rest } = ofPort;
    if (port === undefined) yield error(`${field}.port`, "is required");
    if (Object.keys(rest).length === 0) yield error(field, "needs a setting besides the port");
    yield* checkSettings(ofPort, field, namespace);
  }
  yield* checkTunnel(policy.tunnel, `${at}.tunnel`);
}

function* checkSettings(policy: TrafficPolicy | PortTrafficPolicy, at: string, namespace: string): Iterable<Problem> {
  yield* checkOutlierDetection(policy.outlierDetection, `${at}.outlierDetection`);
  yield* checkConnectionPool(policy.connectionPool, `${at}.connectionPool`);
  yield* checkLoadBalancer(policy.loadBalancer, `${at}.loadBalancer`, policy.outlierDetection);
  yield* checkClientTls(policy.tls, `${at}.tls`, namespace);
}

function* checkTunnel(tunnel: TrafficPolicy["tunnel"], at: string): Iterable<Problem> {
  if (tunnel === undefined) return;
  const { protocol = "", targetHost, targetPort } = tunnel;
  if (!["", "CONNECT", "POST"].includes(protocol)) {
    yield error(`${at}.protocol`, `must be CONNECT or POST, not "${protocol}"`);
  }
  if (isIP(targetHost) === 0) yield* checkFqdn(targetHost, `${at}.targetHost`);
  yield* checkPort(targetPort, `${at}.targetPort`);
}

function* checkOutlierDetection(outlier: OutlierDetection | undefined, at: string): Iterable<Problem> {
  if (outlier === undefined) return;
  if ((outlier.consecutiveErrors ?? 0) !== 0) {
    yield warning(`${at}.consecutiveErrors`, "is deprecated: use consecutiveGatewayErrors or consecutive5xxErrors");
  }
  if ((outlier.consecutiveLocalOriginFailures ?? 0) > 0 && outlier.splitExternalLocalOriginErrors !== true) {
    yield error(`${at}.consecutiveLocalOriginFailures`, "needs splitExternalLocalOriginErrors");
  }
  yield* checkDuration(outlier.interval, `${at}.interval`);
  yield* checkDuration(outlier.baseEjectionTime, `${at}.baseEjectionTime`);
  yield* checkPercent(outlier.maxEjectionPercent, `${at}.maxEjectionPercent`);
  yield* checkPercent(outlier.minHealthPercent, `${at}.minHealthPercent`);
}

/** Limits on connections and requests. */
export function* checkConnectionPool(pool: ConnectionPool | undefined, at: string): Iterable<Problem> {
  if (pool === undefined) return;
  const { tcp, http } = pool;
  if (tcp === undefined && http === undefined) yield error(at, "needs tcp or http settings");
  for (const name of [
    "http1MaxPendingRequests",
    "http2MaxRequests",
    "maxRequestsPerConnection",
    "maxRetries",
    "maxConcurrentStreams",
  ] as const) {
    yield* checkNotNegative(http?.[name], `${at}.http.${name}`);
  }
  yield* checkDuration(http?.idleTimeout, `${at}.http.idleTimeout`);
  if (http?.h2UpgradePolicy === "UPGRADE" && http.useClientProtocol === true) {
    yield error(`${at}.http.useClientProtocol`, "cannot be set together with h2UpgradePolicy UPGRADE");
  }
  yield* checkNotNegative(tcp?.maxConnections, `${at}.tcp.maxConnections`);
  yield* checkDuration(tcp?.connectTimeout, `${at}.tcp.connectTimeout`);
  yield* checkDuration(tcp?.maxConnectionDuration, `${at}.tcp.maxConnectionDuration`);
  // 0 turns this one off.
  if (Math.trunc(tcp?.idleTimeout ?? 0) !== 0) yield* checkDuration(tcp?.idleTimeout, `${at}.tcp.idleTimeout`);
  yield* checkDuration(tcp?.tcpKeepalive?.time, `${at}.tcp.tcpKeepalive.time`);
  yield* checkDuration(tcp?.tcpKeepalive?.interval, `${at}.tcp.tcpKeepalive.interval`);
}

function* checkLoadBalancer(
  settings: LoadBalancer | undefined,
  at: string,
  outlier: OutlierDetection | undefined,
): Iterable<Problem> {
  if (settings === undefined) return;
  const { consistentHash, localityLbSetting, warmup } = settings;
  if (consistentHash !== undefined) yield* checkConsistentHash(consistentHash, `${at}.consistentHash`);
  yield* checkLocalityLb(localityLbSetting, `${at}.localityLbSetting`, outlier);
  yield* checkDuration(warmup?.duration, `${at}.warmup.duration`);
  if ((warmup?.minimumPercent ?? 0) > 100) yield error(`${at}.warmup.minimumPercent`, "must be at most 100");
  if ((warmup?.aggression ?? 1) < 1) yield error(`${at}.warmup.aggression`, "must be at least 1");
}

function* checkConsistentHash(hash: ConsistentHash, at: string): Iterable<Problem> {
  const { httpCookie, minimumRingSize = 0, ringHash, maglev } = hash;
  if (httpCookie?.name === "") yield error(`${at}.httpCookie.name`, "is required");
  const names = new Set<string>();
  for (const [i, { name }] of (httpCookie?.attributes ?? []).entries()) {
    if (name === "") yield error(`${at}.httpCookie.attributes[${i}].name`, "is required");
    else if (names.has(name)) yield error(`${at}.httpCookie.attributes[${i}].name`, `is there twice: "${name}"`);
    names.add(name);
  }
  if (minimumRingSize !== 0) {
    yield warning(`${at}.minimumRingSize`, "is deprecated: use ringHash");
    if (ringHash !== undefined || maglev !== undefined) {
      yield error(`${at}.minimumRingSize`, "cannot be set together with ringHash or maglev");
    }
  }
  const size = maglev?.tableSize ?? 0;
  if (maglev !== undefined && !(size < MAGLEV_LIMIT && isPrime(size))) {
    yield error(`${at}.maglev.tableSize`, `must be a prime number below ${MAGLEV_LIMIT}, not ${size}`);
  }
}

/** As Envoy decides it, for which 1 is a prime number too. */
function isPrime(number: number): boolean {
  if (number < 4) return number !== 0;
  if (number % 2 === 0) return false;
  for (let factor = 3; factor * factor <= number; factor += 2) if (number % factor === 0) return false;
  return true;
}
