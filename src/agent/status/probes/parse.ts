/** The application's probes, which injection moves here so that the kubelet can reach them past mutual TLS. */
import { MeshError } from "#lib/mesh-error.ts";

export interface HttpProbe {
  readonly kind: "http";
  readonly port: number;
  readonly path: string;
  readonly https: boolean;
  readonly timeoutMs: number;
}

export interface TcpProbe {
  readonly kind: "tcp";
  readonly port: number;
  readonly timeoutMs: number;
}

export interface GrpcProbe {
  readonly kind: "grpc";
  readonly port: number;
  readonly service: string;
  readonly timeoutMs: number;
}

export type AppProbe = HttpProbe | TcpProbe | GrpcProbe;

const PATH = /^\/(app-health|app-lifecycle)\/[^/]+\/(livez|readyz|startupz|prestopz|poststartz)$/;
/** As Kubernetes has it. */
const DEFAULT_TIMEOUT_SECONDS = 1;

/** Reads ISTIO_KUBE_APP_PROBERS: probes by the path under which they are served. Throws when it makes no sense. */
export function parseAppProbes(json: string): ReadonlyMap<string, AppProbe> {
  if (json === "") return new Map();
  let probers: Readonly<Record<string, unknown>>;
  try {
    probers = JSON.parse(json);
  } catch (cause) {
    throw new MeshError("APP_PROBES_INVALID", `failed to decode ISTIO_KUBE_APP_PROBERS: ${json}`, { cause });
  }
  return new Map(Object.entries(probers).map(([path, prober]) => [path, parseProbe(path, fieldsOf(prober))]));
}

type Fields = Readonly<Record<string, unknown>>;

function parseProbe(path: string, prober: Fields): AppProbe {
  if (!PATH.test(path)) throw invalid(`invalid path ${path}, must be in form of regex pattern ${PATH.source}`);
  const { httpget, tcpsocket, grpc } = prober;
  if ([httpget, tcpsocket, grpc].filter((action) => action !== undefined && action !== null).length !== 1) {
    throw invalid(`invalid prober type for ${path}, must be one of type httpGet, tcpSocket or gRPC`);
  }
  const action = fieldsOf(httpget ?? tcpsocket ?? grpc);
  const { port } = action;
  if (typeof port !== "number") throw invalid(`invalid prober config for ${path}, the port must be int type`);
  const timeoutMs = 1000 * (Number(prober.timeoutseconds) || DEFAULT_TIMEOUT_SECONDS);
  if (tcpsocket !== undefined) return { kind: "tcp", port, timeoutMs };
  if (grpc !== undefined) return { kind: "grpc", port, timeoutMs, service: String(action.service ?? "") };
  const target = String(action.path ?? "");
  return {
    kind: "http",
    port,
    timeoutMs,
    path: target.startsWith("/") ? target : `/${target}`,
    https: action.scheme === "HTTPS",
  };
}

/** Names of fields are read without regard to case, as Go does. */
function fieldsOf(value: unknown): Fields {
  return Object.fromEntries(Object.entries(Object(value)).map(([name, field]) => [name.toLowerCase(), field]));
}

function invalid(message: string): MeshError {
  return new MeshError("APP_PROBES_INVALID", message);
}
