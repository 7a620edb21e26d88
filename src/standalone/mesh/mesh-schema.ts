/** The fields of `mesh.yaml`. Set and unset stay apart; defaults are in `members.ts`. */
import { type Fields, type Infer, list, map, message, oneof, required } from "#config/schema/message.ts";
import { anything, bool, enumeration, intOrString, string, struct, uint32 } from "#config/schema/scalars.ts";
import { AGENTS_MODES, RESTART_POLICIES } from "./mesh.ts";

const HTTP_GET = { path: string(), port: required(intOrString()), headers: map(string()) };
const TCP_SOCKET = { port: required(intOrString()) };
const EXEC = { command: required(list(string())) };
const PROBE = {
  httpGet: message(HTTP_GET),
  tcpSocket: message(TCP_SOCKET),
  exec: message(EXEC),
  initialDelaySeconds: uint32(),
  periodSeconds: uint32(),
  timeoutSeconds: uint32(),
  failureThreshold: uint32(),
  successThreshold: uint32(),
};
const probeSchema = message(PROBE, oneof("httpGet", "tcpSocket", "exec"));
/** Quantities as in Kubernetes: `256Mi`, `500m`. */
const LIMITS = { memory: intOrString(), cpu: anything(), pids: uint32() };
const POD = {
  name: required(string()),
  namespace: string(),
  serviceAccount: string(),
  labels: map(string()),
  annotations: map(string()),
  replicas: uint32(),
  /** Numbers, or `{name, port, protocol}`. */
  ports: list(anything()),
  publish: list(string()),
};
const WORKLOAD = {
  ...POD,
  command: required(list(string())),
  workingDir: string(),
  env: map(string()),
  envFrom: list(string()),
  user: intOrString(),
  readiness: probeSchema,
  liveness: probeSchema,
  restart: enumeration(...RESTART_POLICIES),
  after: list(string()),
  limits: message(LIMITS),
  inject: bool(),
};
const SUGGESTION = { what: required(string()), run: required(string()) };
const NETWORK = { cidr: string() };
const SPEC = {
  config: list(string()),
  meshConfig: struct(),
  workloads: list(message(WORKLOAD)),
  gateways: list(message(POD)),
  network: message(NETWORK),
  agents: enumeration(...AGENTS_MODES),
  exitWhenDone: bool(),
  onUnreadablePolicy: enumeration("deny", "ignore"),
  try: list(message(SUGGESTION)),
};
const METADATA = { name: required(string()), labels: map(string()), annotations: map(string()) };
const MESH = {
  apiVersion: required(string()),
  kind: required(string()),
  metadata: required(message(METADATA)),
  spec: required(message(SPEC)),
};

export const meshSchema = message(MESH);
const PORT = { name: string(), port: required(uint32()), protocol: enumeration("TCP", "UDP") };
export const portSchema = message(PORT);

export type MeshFile = Infer<typeof meshSchema>;
export type PodFields = NonNullable<MeshFile["spec"]["gateways"]>[number];
export type WorkloadFields = NonNullable<MeshFile["spec"]["workloads"]>[number];
export type ProbeFields = NonNullable<WorkloadFields["readiness"]>;
export type LimitFields = NonNullable<WorkloadFields["limits"]>;

/** Which fields an object of the file may have, by the path of the object. */
const FIELDS_AT: readonly (readonly [RegExp, Fields])[] = [
  [/^$/, MESH],
  [/^metadata$/, METADATA],
  [/^spec$/, SPEC],
  [/^spec\.workloads\[\d+\]$/, WORKLOAD],
  [/^spec\.gateways\[\d+\]$/, POD],
  [/\.(readiness|liveness)$/, PROBE],
  [/^spec\.network$/, NETWORK],
  [/^spec\.try\[\d+\]$/, SUGGESTION],
  [/\.exec$/, EXEC],
  [/\.limits$/, LIMITS],
  [/\.httpGet$/, HTTP_GET],
  [/\.tcpSocket$/, TCP_SOCKET],
  [/\.ports\[\d+\]$/, PORT],
];

/** Names that are allowed beside a field, given by its path. */
export function allowedBeside(field: string): readonly string[] {
  const parent = field.replace(/(\.?[^.[\]]+|\["(?:[^"\\]|\\.)*"\])$/, "");
  return Object.keys(FIELDS_AT.find(([pattern]) => pattern.test(parent))?.[1] ?? {});
}
