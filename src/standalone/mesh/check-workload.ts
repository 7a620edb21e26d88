/** What is wrong with the fields that only workloads have. */
import { formatField } from "#config/schema/field-path.ts";
import { portNumber, portOf } from "./members.ts";
import { type Port, PROXY_ID } from "./mesh.ts";
import type { LimitFields, ProbeFields, WorkloadFields } from "./mesh-schema.ts";
import { parseCpu, parseMemory } from "./quantity.ts";

/** Ports that agent and Envoy of a sidecar listen on. */
const PROXY_PORTS = new Set([15000, 15001, 15004, 15006, 15020, 15021, 15053, 15090]);
const VARIABLE = /^[^=\0]+$/;
/** Less, and not even the tools that enter the namespace would start. */
const LEAST_MEMORY_BYTES = 4 * 1024 * 1024;
const LEAST_PIDS = 4;

/** Adds a problem about a field, given from the workload on. */
export type Report = (path: string, message: string) => void;

/** Reports what is wrong with a workload. */
export function checkWorkload(workload: WorkloadFields, report: Report): void {
  const { user, readiness, liveness, inject = true } = workload;
  const ports = (workload.ports ?? []).map(portOf).filter((port) => port !== undefined);
  checkCommand(workload, report);
  if (String(user) === String(PROXY_ID)) {
    report("user", `must not be ${PROXY_ID}: that is the proxy, whose traffic is not captured`);
  }
  if (inject) {
    for (const [i, { port }] of ports.entries()) {
      if (PROXY_PORTS.has(port)) report(`ports[${i}]`, `must not be ${port}: the sidecar listens on it`);
    }
  }
  if (readiness !== undefined) checkProbe(readiness, ports, (path, message) => report(`readiness${path}`, message));
  if (liveness !== undefined) checkProbe(liveness, ports, (path, message) => report(`liveness${path}`, message));
  if (workload.limits !== undefined) checkLimits(workload.limits, report);
}

function checkCommand({ command, env = {} }: WorkloadFields, report: Report): void {
  if (command.length === 0 || command[0] === "") report("command", "needs a program, such as [node, app.ts]");
  if (command.some((part) => part.includes("\0"))) report("command", "must not hold NUL characters");
  for (const [name, value] of Object.entries(env)) {
    if (!VARIABLE.test(name)) report(formatField("env", name), "is not a variable's name");
    if (value.includes("\0")) report(formatField("env", name), "must not hold NUL characters");
  }
}

function checkProbe(probe: ProbeFields, ports: readonly Port[], report: Report): void {
  const { httpGet, tcpSocket, exec, periodSeconds, timeoutSeconds, failureThreshold, successThreshold } = probe;
  const least = { periodSeconds, timeoutSeconds, failureThreshold, successThreshold };
  for (const [name, value] of Object.entries(least)) if (value === 0) report(`.${name}`, "must be at least 1");
  if (exec !== undefined) {
    if ((exec.command[0] ?? "") === "") report(".exec.command", "needs a program");
    return;
  }
  const kind = httpGet === undefined ? "tcpSocket" : "httpGet";
  const port = httpGet?.port ?? tcpSocket?.port;
  if (port === undefined) {
    report("", "needs httpGet, tcpSocket or exec");
    return;
  }
  const number = portNumber(port, ports);
  if (number === undefined) report(`.${kind}.port`, `names "${port}", which is not in ports`);
  else if (!isPort(number)) report(`.${kind}.port`, `must be a port from 1 to 65535, not ${number}`);
  if (httpGet?.path !== undefined && !httpGet.path.startsWith("/")) report(".httpGet.path", "must start with /");
}

function checkLimits({ memory, cpu, pids }: LimitFields, report: Report): void {
  const bytes = memory === undefined ? undefined : parseMemory(memory);
  if (memory !== undefined && bytes === undefined) {
    report("limits.memory", `must be an amount such as 256Mi or 1G, not ${JSON.stringify(memory)}`);
  } else if (bytes !== undefined && bytes < LEAST_MEMORY_BYTES) report("limits.memory", "must be at least 4Mi");
  if (cpu !== undefined && (parseCpu(cpu) ?? 0) < 10) {
    report("limits.cpu", `must be an amount such as 500m or 1.5, at least 10m, not ${JSON.stringify(cpu)}`);
  }
  if (pids !== undefined && pids < LEAST_PIDS) report("limits.pids", `must be at least ${LEAST_PIDS}`);
}

export function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}
