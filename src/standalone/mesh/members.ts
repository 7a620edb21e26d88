/** From the fields of a checked mesh file to members: replicas become members of their own, defaults are filled in. */
import { resolve } from "node:path";
import { parse } from "#config/schema/parse.ts";
import type { App, Member, Port, Probe } from "./mesh.ts";
import { type MeshFile, type PodFields, portSchema, type ReadinessFields, type WorkloadFields } from "./mesh-schema.ts";
import { parsePublishEntry } from "./publish-entry.ts";

/** The members of a spec without errors; relative paths start from `folder`. */
export function membersOf({ workloads = [], gateways = [] }: MeshFile["spec"], folder: string): Member[] {
  return [
    ...gateways.flatMap((gateway) =>
      replicasOf({ ...podOf(gateway, "istio-system", `${gateway.name}-service-account`), proxy: "router" }, gateway),
    ),
    ...workloads.flatMap((workload) => {
      const pod = podOf(workload, "default", "default");
      const app = appOf(workload, pod.ports, folder);
      return replicasOf({ ...pod, proxy: workload.inject === false ? "none" : "sidecar", app }, workload);
    }),
  ];
}

/** Names of the replicas: the name itself for one, `name-1` and so on for several. */
export function replicaNames({ name, replicas = 1 }: Pick<PodFields, "name" | "replicas">): string[] {
  return replicas === 1 ? [name] : Array.from({ length: replicas }, (_, i) => `${name}-${i + 1}`);
}

/** A port of the list: a number, or an object with `name` and `port`. Undefined when it is neither. */
export function portOf(raw: unknown): Port | undefined {
  if (typeof raw === "number") return { name: "", port: raw };
  const { value } = parse(portSchema, raw, "");
  return value && { name: value.name ?? "", port: value.port };
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
    app: undefined,
  };
}

function replicasOf(pod: Omit<Member, "name">, fields: PodFields): Member[] {
  return replicaNames(fields).map((name) => ({ ...pod, name }));
}

function appOf(
  { command, workingDir, env, user, readiness }: WorkloadFields,
  ports: readonly Port[],
  folder: string,
): App {
  return {
    command,
    workingDir: resolve(folder, workingDir ?? "."),
    env: env ?? {},
    user: String(user ?? "nobody"),
    readiness: readiness && probeOf(readiness, ports),
  };
}

/** Kubernetes' defaults, but for the period: here nobody waits for ten seconds. */
function probeOf(fields: ReadinessFields, ports: readonly Port[]): Probe {
  const { httpGet, tcpSocket } = fields;
  const port = httpGet?.port ?? tcpSocket?.port ?? 0;
  return {
    port: portNumber(port, ports) ?? 0,
    httpGet: httpGet && { path: httpGet.path ?? "/", headers: httpGet.headers ?? {} },
    initialDelayMs: (fields.initialDelaySeconds ?? 0) * 1000,
    periodMs: (fields.periodSeconds ?? 2) * 1000,
    timeoutMs: (fields.timeoutSeconds ?? 1) * 1000,
    failureThreshold: fields.failureThreshold ?? 3,
    successThreshold: fields.successThreshold ?? 1,
  };
}
