/** What the shape of a mesh file does not say: names that fit, ports that are free, accounts that are allowed. */
import type { Problem } from "#config/problem.ts";
import { formatField } from "#config/schema/field-path.ts";
import { parse } from "#config/schema/parse.ts";
import { portNumber, portOf, replicaNames } from "./members.ts";
import { memberKey, type Port, PROXY_ID } from "./mesh.ts";
import { type MeshFile, type PodFields, portSchema, type ReadinessFields, type WorkloadFields } from "./mesh-schema.ts";
import { parsePublishEntry } from "./publish-entry.ts";

/** The control plane's place in the mesh. */
export const CONTROL_PLANE = { name: "istiod", namespace: "istio-system" } as const;
export const NAME_RULE =
  "must be at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends";

/** Ports that agent and Envoy of a sidecar listen on. */
const PROXY_PORTS = new Set([15000, 15001, 15004, 15006, 15020, 15021, 15053, 15090]);
const MAX_REPLICAS = 100;
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const ACCOUNT = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const VARIABLE = /^[^=\0]+$/;

type Report = (path: string, message: string) => void;

/** Whether a text can name a workload, a namespace or a mesh. */
export function isName(text: string): boolean {
  return NAME.test(text);
}

/** Problems of the workloads and gateways of a spec. */
export function checkMembers({ workloads = [], gateways = [] }: MeshFile["spec"]): Problem[] {
  const problems: Problem[] = [];
  const seen = new Map<string, string>([[memberKey(CONTROL_PLANE), "the control plane"]]);
  const publishedBy = new Map<string, string>();
  const check = (pod: PodFields, at: string, namespace: string): Report => {
    const report: Report = (path, message) => problems.push({ field: below(at, path), message, severity: "error" });
    checkPod(pod, report);
    checkUnique({ names: replicaNames(pod), namespace: pod.namespace ?? namespace, seen }, report);
    checkPublish(pod, publishedBy, report);
    return report;
  };
  for (const [i, workload] of workloads.entries()) {
    checkWorkload(workload, check(workload, `spec.workloads[${i}]`, "default"));
  }
  for (const [i, gateway] of gateways.entries()) check(gateway, `spec.gateways[${i}]`, "istio-system");
  return problems;
}

function checkPod(pod: PodFields, report: Report): void {
  const { name, namespace = "default", serviceAccount = "default", replicas = 1 } = pod;
  if (!isName(name)) report("name", `${NAME_RULE}, not ${quoted(name)}`);
  if (!isName(namespace)) report("namespace", `${NAME_RULE}, not ${quoted(namespace)}`);
  if (!ACCOUNT.test(serviceAccount)) {
    report("serviceAccount", `must be lower-case letters, digits, dashes and dots, not ${quoted(serviceAccount)}`);
  }
  if (replicas > MAX_REPLICAS) report("replicas", `must be at most ${MAX_REPLICAS}, not ${replicas}`);
  else if (!isName(replicaNames(pod).at(-1) ?? name)) report("name", `is too long with the number of the replica`);
  for (const [key, value] of Object.entries(pod.labels ?? {})) {
    if (!LABEL_KEY.test(key)) report(formatField("labels", key), "is not a label's name");
    if (!LABEL_VALUE.test(value)) report(formatField("labels", key), `has ${quoted(value)}: ${LABEL_RULE}`);
  }
  checkPorts(pod.ports ?? [], report);
}

const LABEL_RULE = "a label's value is at most 63 letters, digits, dashes, dots and underscores";

function checkPorts(raw: readonly unknown[], report: Report): void {
  const seen = new Set<string | number>();
  for (const [i, item] of raw.entries()) {
    const at = `ports[${i}]`;
    const unknown = typeof item === "object" ? parse(portSchema, item, at).problems : [];
    for (const { field } of unknown) report(field, "is not a port: write a number, or an object with name and port");
    const found = portOf(item);
    if (found === undefined) {
      if (unknown.length === 0) report(at, `must be a number, or an object with name and port, not ${quoted(item)}`);
      continue;
    }
    const { name, port } = found;
    if (!isPort(port)) report(at, `must be a port from 1 to 65535, not ${port}`);
    if (seen.has(port) || (name !== "" && seen.has(name))) report(at, "is given twice");
    seen.add(port).add(name === "" ? port : name);
  }
}

function quoted(value: unknown): string {
  return JSON.stringify(value);
}

interface Unique {
  readonly names: readonly string[];
  readonly namespace: string;
  readonly seen: Map<string, string>;
}

function checkUnique({ names, namespace, seen }: Unique, report: Report): void {
  for (const name of names) {
    const key = memberKey({ name, namespace });
    const other = seen.get(key);
    if (other !== undefined) report("name", `"${name}" in namespace "${namespace}" is already the name of ${other}`);
    seen.set(key, "another member of the mesh");
  }
}

function checkPublish(pod: PodFields, publishedBy: Map<string, string>, report: Report): void {
  for (const [i, text] of (pod.publish ?? []).entries()) {
    const at = `publish[${i}]`;
    const entry = parsePublishEntry(text);
    if (typeof entry === "string") {
      report(at, entry);
      continue;
    }
    if ((pod.replicas ?? 1) !== 1) report(at, "needs replicas: 1, since a host port leads to one process");
    const key = `${entry.host}:${entry.hostPort}`;
    const other = publishedBy.get(key);
    if (other !== undefined && entry.hostPort !== 0)
      report(at, `has host port ${entry.hostPort}, which "${other}" publishes`);
    publishedBy.set(key, pod.name);
  }
}

function checkWorkload(workload: WorkloadFields, report: Report): void {
  const { command, env = {}, user, readiness, inject = true } = workload;
  const ports = (workload.ports ?? []).map(portOf).filter((port) => port !== undefined);
  if (command.length === 0 || command[0] === "") report("command", "needs a program, such as [node, app.ts]");
  if (command.some((part) => part.includes("\0"))) report("command", "must not hold NUL characters");
  for (const [name, value] of Object.entries(env)) {
    if (!VARIABLE.test(name)) report(formatField("env", name), "is not a variable's name");
    if (value.includes("\0")) report(formatField("env", name), "must not hold NUL characters");
  }
  if (String(user) === String(PROXY_ID)) {
    report("user", `must not be ${PROXY_ID}: that is the proxy, whose traffic is not captured`);
  }
  if (inject) {
    for (const [i, { port }] of ports.entries()) {
      if (PROXY_PORTS.has(port)) report(`ports[${i}]`, `must not be ${port}: the sidecar listens on it`);
    }
  }
  if (readiness !== undefined) checkReadiness(readiness, ports, report);
}

function checkReadiness(readiness: ReadinessFields, ports: readonly Port[], report: Report): void {
  const { httpGet, tcpSocket, periodSeconds, timeoutSeconds, failureThreshold, successThreshold } = readiness;
  const kind = httpGet === undefined ? "tcpSocket" : "httpGet";
  const port = httpGet?.port ?? tcpSocket?.port;
  if (port === undefined) {
    report("readiness", "needs httpGet or tcpSocket");
    return;
  }
  const number = portNumber(port, ports);
  if (number === undefined) report(`readiness.${kind}.port`, `names "${port}", which is not in ports`);
  else if (!isPort(number)) report(`readiness.${kind}.port`, `must be a port from 1 to 65535, not ${number}`);
  if (httpGet?.path !== undefined && !httpGet.path.startsWith("/"))
    report("readiness.httpGet.path", "must start with /");
  const least = { periodSeconds, timeoutSeconds, failureThreshold, successThreshold };
  for (const [name, value] of Object.entries(least)) if (value === 0) report(`readiness.${name}`, "must be at least 1");
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

function below(at: string, path: string): string {
  return path.startsWith("[") ? `${at}${path}` : `${at}.${path}`;
}
