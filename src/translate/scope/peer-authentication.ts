/** Which transport workloads accept, by PeerAuthentication. */
import type { ConfigObject } from "#config/config-object.ts";
import type { MutualTls, PeerAuthentication } from "#config/kinds/peer-authentication.ts";
import { oldestFirst } from "#config/precedence.ts";
import { hasLabels } from "#model/labels.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { derived } from "../indexes.ts";

/** What a workload accepts: plain text, both, or mutual TLS alone. */
export type MtlsMode = "DISABLE" | "PERMISSIVE" | "STRICT";

/** The mode of a workload, and of those of its ports that differ by policy. */
export interface WorkloadMtls {
  readonly mode: MtlsMode;
  readonly ports: Readonly<Record<number, MtlsMode>>;
}

type Policy = ConfigObject<PeerAuthentication>;

/** The policies that may apply to workloads of a namespace: its own and those of the root namespace. */
export function policiesOf(snapshot: Snapshot, namespace: string): readonly Policy[] {
  return byNamespace(`${snapshot.mesh.rootNamespace}/${namespace}`, snapshot.peerAuthentications);
}

const byNamespace = derived((key: string, policies: readonly Policy[]): readonly Policy[] => {
  const namespaces = key.split("/");
  return policies.filter(({ metadata }) => namespaces.includes(metadata.namespace)).sort(oldestFirst);
});

/** What a client may assume of a service: the mode of its namespace, else of the mesh. Workload policies are not known. */
export function namespaceMode(snapshot: Snapshot, namespace: string): MtlsMode {
  return wideMode(`${snapshot.mesh.rootNamespace}/${namespace}`, policiesOf(snapshot, namespace));
}

const wideMode = derived((key: string, policies: readonly Policy[]): MtlsMode => {
  const [rootNamespace = "", namespace = ""] = key.split("/");
  const wide = policies.filter((policy) => !hasSelector(policy));
  return effectiveMode(wide, { namespace, labels: {} }, rootNamespace).mode;
});

/** Whose policy is asked for. */
export interface Workload {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** The narrowest policy wins: workload, namespace, mesh; the oldest of each. What is unset is inherited. */
export function effectiveMode(policies: readonly Policy[], workload: Workload, rootNamespace: string): WorkloadMtls {
  const wide = policies.filter((policy) => !hasSelector(policy));
  const ofMesh = wide.find(({ metadata }) => metadata.namespace === rootNamespace);
  const ofNamespace =
    workload.namespace === rootNamespace
      ? undefined
      : wide.find(({ metadata }) => metadata.namespace === workload.namespace);
  const ofWorkload = policies.find(
    (policy) => selects(policy, workload) && policy.metadata.namespace !== rootNamespace,
  );
  const mode = [ofWorkload, ofNamespace, ofMesh].map((policy) => modeOf(policy?.spec.mtls)).find(isSet) ?? "PERMISSIVE";
  const ports = Object.entries(ofWorkload?.spec.portLevelMtls ?? {}).map(([port, mtls]) => [
    port,
    modeOf(mtls) ?? mode,
  ]);
  return { mode, ports: Object.fromEntries(ports) };
}

/** The mode of one port of a workload. */
export function modeOfPort({ mode, ports }: WorkloadMtls, port: number): MtlsMode {
  return ports[port] ?? mode;
}

/** Whether a policy has a selector that fits the workload. Selectors in the root namespace select nothing. */
function selects(policy: Policy, workload: Workload): boolean {
  if (!hasSelector(policy) || policy.metadata.namespace !== workload.namespace) return false;
  return hasLabels(workload.labels, policy.spec.selector?.matchLabels);
}

function hasSelector({ spec }: Policy): boolean {
  return Object.keys(spec.selector?.matchLabels ?? {}).length > 0;
}

function modeOf(mtls: MutualTls | undefined): MtlsMode | undefined {
  return mtls?.mode === "UNSET" ? undefined : mtls?.mode;
}

function isSet<T>(value: T | undefined): value is T {
  return value !== undefined;
}
