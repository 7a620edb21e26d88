import { checkNotNegative } from "../../checks/amounts.ts";
import { checkLabels } from "../../checks/labels.ts";
import { checkPort } from "../../checks/network.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem } from "../../schema/problem.ts";
import type { ReadinessProbe, WorkloadGroup } from "./schema.ts";

/** Narrower than other names of headers, as Kubernetes has it for its probes. */
const PROBE_HEADER = /^[-A-Za-z0-9]+$/;

/** Checks a WorkloadGroup. Its template lacks what each workload brings along, so it is not checked as an entry. */
export function* checkWorkloadGroup({ spec }: ConfigObject<WorkloadGroup>): Iterable<Problem> {
  yield* checkLabels(spec.metadata?.labels, "spec.metadata.labels");
  if (spec.probe !== undefined) yield* checkProbe(spec.probe, "spec.probe");
}

function* checkProbe(probe: ReadinessProbe, at: string): Iterable<Problem> {
  for (const name of [
    "periodSeconds",
    "initialDelaySeconds",
    "timeoutSeconds",
    "successThreshold",
    "failureThreshold",
  ] as const) {
    yield* checkNotNegative(probe[name], `${at}.${name}`);
  }
  const { httpGet, tcpSocket, exec, grpc } = probe;
  if (httpGet !== undefined) yield* checkHttpGet(httpGet, `${at}.httpGet`);
  else if (tcpSocket !== undefined) yield* checkPort(tcpSocket.port, `${at}.tcpSocket.port`);
  else if (exec !== undefined) {
    if (exec.command.length === 0) yield error(`${at}.exec.command`, "is required");
  } else if (grpc !== undefined) yield* checkPort(grpc.port ?? 0, `${at}.grpc.port`);
  else yield error(at, "needs one of httpGet, tcpSocket, exec and grpc");
}

function* checkHttpGet(probe: NonNullable<ReadinessProbe["httpGet"]>, at: string): Iterable<Problem> {
  const { port, scheme = "", httpHeaders = [] } = probe;
  yield* checkPort(port, `${at}.port`);
  if (!["", "HTTP", "HTTPS"].includes(scheme)) yield error(`${at}.scheme`, `must be HTTP or HTTPS, not "${scheme}"`);
  for (const [i, { name = "" }] of httpHeaders.entries()) {
    if (!PROBE_HEADER.test(name)) {
      yield error(`${at}.httpHeaders[${i}].name`, `must be letters, digits and dashes, not "${name}"`);
    }
  }
}
