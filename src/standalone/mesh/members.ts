/** From the fields of a checked mesh file to members: replicas become members of their own, defaults are filled in. */
import { resolve } from "node:path";
import { parse } from "#config/schema/parse.ts";
import { type App, type Limits, type Member, memberKey, type Port, type Probe } from "./mesh.ts";
import {
  type LimitFields,
  type MeshFile,
  type PodFields,
  type ProbeFields,
  portSchema,
  type WorkloadFields,
} from "./mesh-schema.ts";
import { parsePublishEntry } from "./publish-entry.ts";
import { parseCpu, parseMemory } from "./quantity.ts";

/** The members of a spec without errors; relative paths start from `folder`. */
export function membersOf({ workloads = [], gateways = [] }: MeshFile["spec"], folder: string): Member[] {
  return [
    ...gateways.flatMap((gateway) =>
      replicasOf({ ...podOf(gateway, "istio-system", `${gateway.name}-service-account`), proxy: "router" }, gateway),
    ),
    ...workloads.flatMap((workload) => {
      const pod = podOf(workload, "default", "default");
      const member = {
        ...pod,
        proxy: workload.inject === false ? ("none" as const) : ("sidecar" as const),
        after: (workload.after ?? []).flatMap((name) => findWorkload(name, pod.namespace, workloads) ?? []),
        readiness: workload.readiness && probeOf(workload.readiness, pod.ports),
        app: appOf(workload, pod.ports, folder),
      };
      return replicasOf(member, workload);
    }),
  ];
}

/** `name.namespace` of the workload that another one means by a name: of its own namespace unless it says otherwise. */
export function findWorkload(
  wanted: string,
  namespace: string,
  workloads: readonly Pick<WorkloadFields, "name" | "namespace">[],
): string | undefined {
  const keys = new Set(
    workloads.map((workload) => memberKey({ ...workload, namespace: workload.namespace ?? "default" })),
  );
  return [memberKey({ name: wanted, namespace }), wanted].find((key) => keys.has(key));
}

/** Names of the replicas: the name itself for one, `name-1` and so on for several. */
export function replicaNames({ name, replicas = 1 }: Pick<PodFields, "name" | "replicas">): string[] {
  return replicas === 1 ? [name] : Array.from({ length: replicas }, (_, i) => `${name}-${i + 1}`);
}

/** A port of the list: a number, or an object with `name` and `port`. Undefined when it is neither. */
export function portOf(raw: unknown): Port | undefined {
  if (typeof raw === "number") return { name: "", port: raw, protocol: "TCP" };
  const { value } = parse(portSchema, raw, "");
  return value && { name: value.name ?? "", port: value.port, protocol: value.protocol ?? "TCP" };
}

/** The number of a port that is given by number or by the name of one in the list. */
export function portNumber(port: number | string, ports: readonly Port[]): number | undefined {
  return typeof port === "number" ? port : ports.find(({ name }) => name === port)?.port;
}

function podOf(fields: PodFields, namespace: string, serviceAccount: string): Omit<Member, "name" | "proxy"> {
  return {
    workload: fields.name,
    namespace: fields.namespace ?? namespace,
    serviceAccount: fields.serviceAccount ?? serviceAccount,
    labels: fields.labels ?? {},
    annotations: fields.annotations ?? {},
    ports: (fields.ports ?? []).map(portOf).filter((port) => port !== undefined),
    publish: (fields.publish ?? []).map(parsePublishEntry).filter((entry) => typeof entry !== "string"),
    after: [],
    readiness: undefined,
    app: undefined,
  };
}

function replicasOf(pod: Omit<Member, "name">, fields: PodFields): Member[] {
  return replicaNames(fields).map((name) => ({ ...pod, name }));
}

function appOf(fields: WorkloadFields, ports: readonly Port[], folder: string): App {
  const { command, workingDir, env, envFrom, user, restart, liveness, limits } = fields;
  return {
    command,
    workingDir: resolve(folder, workingDir ?? "."),
    env: env ?? {},
    envFrom: (envFrom ?? []).map((path) => resolve(folder, path)),
    user: user === undefined ? undefined : String(user),
    restart: restart ?? "always",
    liveness: liveness && probeOf(liveness, ports),
    limits: limitsOf(limits ?? {}),
  };
}

function limitsOf({ memory, cpu, pids }: LimitFields): Limits {
  return {
    memoryBytes: memory === undefined ? undefined : parseMemory(memory),
    cpuMillis: cpu === undefined ? undefined : parseCpu(cpu),
    pids,
  };
}

/** Kubernetes' defaults, but for the period: here nobody waits for ten seconds. */
function probeOf(fields: ProbeFields, ports: readonly Port[]): Probe {
  const { httpGet, tcpSocket, exec } = fields;
  const port = httpGet?.port ?? tcpSocket?.port ?? 0;
  return {
    port: portNumber(port, ports) ?? 0,
    httpGet: httpGet && { path: httpGet.path ?? "/", headers: httpGet.headers ?? {} },
    exec: exec?.command,
    initialDelayMs: (fields.initialDelaySeconds ?? 0) * 1000,
    periodMs: (fields.periodSeconds ?? 2) * 1000,
    timeoutMs: (fields.timeoutSeconds ?? 1) * 1000,
    failureThreshold: fields.failureThreshold ?? 3,
    successThreshold: fields.successThreshold ?? 1,
  };
}
