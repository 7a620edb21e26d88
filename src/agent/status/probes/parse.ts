/** The application's probes, which injection moves here so that the kubelet can reach them past mutual TLS. */
import { LONGEST_TIMER_MS } from "#lib/async/sleep.ts";
import { MeshError } from "#lib/mesh-error.ts";

export interface HttpProbe {
  readonly kind: "http";
  readonly port: number;
  readonly path: string;
  readonly https: boolean;
  /** Undefined: as long as the caller waits. */
  readonly timeoutMs: number | undefined;
}

export interface TcpProbe {
  readonly kind: "tcp";
  readonly port: number;
  /** Undefined: as long as the caller waits. */
  readonly timeoutMs: number | undefined;
}

export interface GrpcProbe {
  readonly kind: "grpc";
  readonly port: number;
  readonly service: string;
  readonly timeoutMs: number;
}

export type AppProbe = HttpProbe | TcpProbe | GrpcProbe;

const PATH = /^\/(app-health|app-lifecycle)\/[^/]+\/(livez|readyz|startupz|prestopz|poststartz)$/;
/** As Kubernetes has it for probes. Others have none of their own: hooks of a container's life may take minutes. */
const DEFAULT_GRPC_TIMEOUT_MS = 1_000;
const ACTIONS = ["httpget", "tcpsocket", "grpc"] as const;

/** Reads ISTIO_KUBE_APP_PROBERS: probes by the path under which they are served. Throws when it makes no sense. */
export function parseAppProbes(json: string): ReadonlyMap<string, AppProbe> {
  if (json === "") return new Map();
  let probers: unknown;
  try {
    probers = JSON.parse(json);
  } catch (cause) {
    throw undecodable(cause instanceof Error ? cause.message : String(cause), json);
  }
  const entries = Object.entries(objectOf(probers, "the whole", json));
  return new Map(entries.map(([path, prober]) => [path, parseProbe(path, prober, json)]));
}

type Fields = Readonly<Record<string, unknown>>;

function parseProbe(path: string, given: unknown, json: string): AppProbe {
  const prober = caseless(objectOf(given, path, json));
  if (!PATH.test(path)) throw invalid(`invalid path ${path}, must be in form of regex pattern ${PATH.source}`);
  const actions = ACTIONS.filter((name) => prober[name] !== undefined && prober[name] !== null);
  const [name] = actions;
  if (name === undefined || actions.length > 1)
    throw invalid(`invalid prober type for ${path}, must be one of type httpGet, tcpSocket or gRPC`);
  const text = (fields: Fields, field: string) => {
    const value = fields[field] ?? "";
    if (typeof value !== "string") throw undecodable(`${field} of ${path} must be text`, json);
    return value;
  };
  const action = caseless(objectOf(prober[name], `${name} of ${path}`, json));
  const { port } = action;
  if (typeof port !== "number" || !Number.isInteger(port))
    throw invalid(`invalid prober config for ${path}, the port must be int type`);
  const timeoutMs = timeout(prober.timeoutseconds ?? 0, path, json);
  if (name === "tcpsocket") return { kind: "tcp", port, timeoutMs };
  if (name === "grpc")
    return { kind: "grpc", port, timeoutMs: timeoutMs ?? DEFAULT_GRPC_TIMEOUT_MS, service: text(action, "service") };
  const target = text(action, "path");
  return {
    kind: "http",
    port,
    timeoutMs,
    path: requestPath(target),
    https: text(action, "scheme") === "HTTPS",
  };
}

/** As a request has it: from its root, without a fragment, and with what no request may hold escaped. */
function requestPath(given: string): string {
  const [path = ""] = given.split("#", 1);
  return `${path.startsWith("/") ? "" : "/"}${path}`
    .toWellFormed()
    .replace(/[^\x21-\x7e]|["<>\\^`{|}]/gu, encodeURIComponent);
}

function timeout(given: unknown, path: string, json: string): number | undefined {
  if (typeof given !== "number" || !Number.isInteger(given))
    throw undecodable(`timeoutSeconds of ${path} must be a whole number`, json);
  return given > 0 ? Math.min(1000 * given, LONGEST_TIMER_MS) : undefined;
}

/** Null is the same as nothing. */
function objectOf(value: unknown, what: string, json: string): Fields {
  if (typeof value !== "object" || Array.isArray(value)) throw undecodable(`${what} must be an object`, json);
  return { ...value };
}

/** Names of fields are read without regard to case, as Go does. */
function caseless(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name.toLowerCase(), field]));
}

function undecodable(problem: string, json: string): MeshError {
  return invalid(`failed to decode app prober err = ${problem}, json string = ${json}`);
}

function invalid(message: string): MeshError {
  return new MeshError("APP_PROBES_INVALID", message);
}
