/** The fields of `mesh.yaml`. Set and unset stay apart; defaults are in `members.ts`. */
import { type Fields, type Infer, list, map, message, oneof, required } from "#config/schema/message.ts";
import { anything, bool, intOrString, string, struct, uint32 } from "#config/schema/scalars.ts";

const HTTP_GET = { path: string(), port: required(intOrString()), headers: map(string()) };
const TCP_SOCKET = { port: required(intOrString()) };
const READINESS = {
  httpGet: message(HTTP_GET),
  tcpSocket: message(TCP_SOCKET),
  initialDelaySeconds: uint32(),
  periodSeconds: uint32(),
  timeoutSeconds: uint32(),
  failureThreshold: uint32(),
  successThreshold: uint32(),
};
const POD = {
  name: required(string()),
  namespace: string(),
  serviceAccount: string(),
  labels: map(string()),
  annotations: map(string()),
  replicas: uint32(),
  /** Numbers, or `{name, port}`. */
  ports: list(anything()),
  publish: list(string()),
};
const WORKLOAD = {
  ...POD,
  command: required(list(string())),
  workingDir: string(),
  env: map(string()),
  user: intOrString(),
  readiness: message(READINESS, oneof("httpGet", "tcpSocket")),
  inject: bool(),
};
const SPEC = {
  config: list(string()),
  meshConfig: struct(),
  workloads: list(message(WORKLOAD)),
  gateways: list(message(POD)),
};
const METADATA = { name: required(string()), labels: map(string()), annotations: map(string()) };
const MESH = {
  apiVersion: required(string()),
  kind: required(string()),
  metadata: required(message(METADATA)),
  spec: required(message(SPEC)),
};

export const meshSchema = message(MESH);
export const portSchema = message({ name: string(), port: required(uint32()) });

export type MeshFile = Infer<typeof meshSchema>;
export type PodFields = NonNullable<MeshFile["spec"]["gateways"]>[number];
export type WorkloadFields = NonNullable<MeshFile["spec"]["workloads"]>[number];
export type ReadinessFields = NonNullable<WorkloadFields["readiness"]>;

/** Which fields an object of the file may have, by the path of the object. */
const FIELDS_AT: readonly (readonly [RegExp, Fields])[] = [
  [/^$/, MESH],
  [/^metadata$/, METADATA],
  [/^spec$/, SPEC],
  [/^spec\.workloads\[\d+\]$/, WORKLOAD],
  [/^spec\.gateways\[\d+\]$/, POD],
  [/\.readiness$/, READINESS],
  [/\.httpGet$/, HTTP_GET],
  [/\.tcpSocket$/, TCP_SOCKET],
  [/\.ports\[\d+\]$/, { name: POD.name, port: POD.replicas }],
];

/** Names that are allowed beside a field, given by its path. */
export function allowedBeside(field: string): readonly string[] {
  const parent = field.replace(/(\.?[^.[\]]+|\["(?:[^"\\]|\\.)*"\])$/, "");
  return Object.keys(FIELDS_AT.find(([pattern]) => pattern.test(parent))?.[1] ?? {});
}
