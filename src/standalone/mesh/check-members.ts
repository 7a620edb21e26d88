/** What the shape of a mesh file does not say: names that fit, ports that are free, accounts that are allowed. */

import { formatField } from "#config/schema/field-path.ts";
import { parse } from "#config/schema/parse.ts";
import type { Problem } from "#config/schema/problem.ts";
import { checkDependencies } from "./check-dependencies.ts";
import { checkWorkload, isPort, type Report } from "./check-workload.ts";
import { portOf, replicaNames } from "./members.ts";
import { memberKey } from "./mesh.ts";
import { type MeshFile, type PodFields, portSchema } from "./mesh-schema.ts";
import { parsePublishEntry } from "./publish-entry.ts";

/** The control plane's place in the mesh. */
export const CONTROL_PLANE = { name: "istiod", namespace: "istio-system" } as const;
export const NAME_RULE =
  "must be at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends";

const MAX_REPLICAS = 100;
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const ACCOUNT = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

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
  return [...problems, ...checkDependencies(workloads)];
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

const PORT_RULE = "write a number, or an object with name, port and protocol (TCP or UDP)";

function checkPorts(raw: readonly unknown[], report: Report): void {
  const seen = new Set<string>();
  for (const [i, item] of raw.entries()) {
    const at = `ports[${i}]`;
    const unknown = typeof item === "object" ? parse(portSchema, item, at).problems : [];
    for (const { field } of unknown) report(field, `is not a port: ${PORT_RULE}`);
    const found = portOf(item);
    if (found === undefined) {
      if (unknown.length === 0) report(at, `must be a port, not ${quoted(item)}: ${PORT_RULE}`);
      continue;
    }
    const { name, port, protocol } = found;
    const number = `${port}/${protocol}`;
    if (!isPort(port)) report(at, `must be a port from 1 to 65535, not ${port}`);
    if (seen.has(number) || (name !== "" && seen.has(name))) report(at, "is given twice");
    seen.add(number).add(name === "" ? number : name);
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

function below(at: string, path: string): string {
  return path.startsWith("[") ? `${at}${path}` : `${at}.${path}`;
}
