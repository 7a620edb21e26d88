/** The application's probes, which injection moves here so that the kubelet can reach them past mutual TLS. */
import { LONGEST_TIMER_MS } from "#lib/async/sleep.ts";
import { goFields } from "#lib/go/go-fields.ts";
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
  if (typeof probers !== "object" || Array.isArray(probers)) throw undecodable("the whole must be an object", json);
  return new Map(Object.entries(probers ?? {}).map(([path, prober]) => [path, parseProbe(path, prober, json)]));
}

type Fields = Readonly<Record<string, unknown>>;

function parseProbe(path: string, given: unknown, json: string): AppProbe {
  const prober = fieldsOf(given, path, json);
  if (!PATH.test(path)) throw invalid(`invalid path ${path}, must be in form of regex pattern ${PATH.source}`);
  const actions = ACTIONS.filter((name) => prober[name] !== undefined && prober[name] !== null);
  const [name] = actions;
  if (name === undefined || actions.length > 1)
    throw invalid(`invalid prober type for ${path}, must be one of type httpGet, tcpSocket or gRPC`);
  const read = fieldReader(path, json);
  const action = fieldsOf(prober[name], `${name} of ${path}`, json);
  if (name !== "grpc" && typeof action.port === "string")
    throw invalid(`invalid prober config for ${path}, the port must be int type`);
  const port = read.int32(action, "port");
  const seconds = read.int32(prober, "timeoutSeconds");
  const timeoutMs = seconds > 0 ? Math.min(1000 * seconds, LONGEST_TIMER_MS) : undefined;
  if (name === "grpc")
    return {
      kind: "grpc",
      port,
      timeoutMs: timeoutMs ?? DEFAULT_GRPC_TIMEOUT_MS,
      service: read.text(action, "service"),
    };
  // The application is where the pod is, and the kubelet sends the headers: these two count for nothing, but must be right.
  read.text(action, "host");
  if (name === "tcpsocket") return { kind: "tcp", port, timeoutMs };
  checkHeaders(action.httpheaders ?? [], path, json);
  return {
    kind: "http",
    port,
    timeoutMs,
    path: requestPath(read.text(action, "path")),
    https: read.text(action, "scheme") === "HTTPS",
  };
}

function checkHeaders(given: unknown, path: string, json: string): void {
  if (!Array.isArray(given)) throw undecodable(`httpHeaders of ${path} must be a list`, json);
  const read = fieldReader(`httpHeaders of ${path}`, json);
  for (const item of given) {
    const header = fieldsOf(item, `each of httpHeaders of ${path}`, json);
    for (const field of ["name", "value"]) read.text(header, field);
  }
}

/** Values as Go reads them: null, and what is missing, is empty. Fields are those of `fieldsOf`. */
function fieldReader(path: string, json: string) {
  return {
    text: (fields: Fields, field: string): string => {
      const value = fields[field.toLowerCase()] ?? "";
      if (typeof value !== "string") throw undecodable(`${field} of ${path} must be text`, json);
      return value;
    },
    int32: (fields: Fields, field: string): number => {
      const value = fields[field.toLowerCase()] ?? 0;
      // What is left of a number that has more than 32 bits is another one.
      if (typeof value !== "number" || (value | 0) !== value)
        throw undecodable(`${field} of ${path} must be a whole number of 32 bits`, json);
      return value;
    },
  };
}

/** As a request has it: from its root, without a fragment, and with what no request may hold escaped. */
function requestPath(given: string): string {
  const [path = ""] = given.split("#", 1);
  return `${path.startsWith("/") ? "" : "/"}${path}`
    .toWellFormed()
    .replace(/[^\x21-\x7e]|["<>\\^`{|}]/gu, encodeURIComponent);
}

function fieldsOf(value: unknown, what: string, json: string): Fields {
  const fields = goFields(value);
  if (fields === undefined) throw undecodable(`${what} must be an object`, json);
  return fields;
}

function undecodable(problem: string, json: string): MeshError {
  return invalid(`failed to decode app prober err = ${problem}, json string = ${json}`);
}

function invalid(message: string): MeshError {
  return new MeshError("APP_PROBES_INVALID", message);
}
