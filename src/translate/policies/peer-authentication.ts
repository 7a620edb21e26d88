/** Which transport workloads accept, by PeerAuthentication. */

import type { MutualTls, PeerAuthentication } from "#config/kinds/peer-authentication/schema.ts";
import type { UnreadablePolicy } from "#config/kinds/unreadable-policy.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { oldestFirst } from "#config/terms/precedence.ts";
import { hasLabels } from "#model/labels/labels.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { derived } from "../recipes/indexes.ts";

/** What a workload accepts: plain text, both, or mutual TLS alone. */
export type MtlsMode = "DISABLE" | "PERMISSIVE" | "STRICT";

/** The mode of a workload, and of those of its ports that differ by policy. */
export interface WorkloadMtls {
  readonly mode: MtlsMode;
  readonly ports: Readonly<Record<number, MtlsMode>>;
  /** The mode is STRICT because this object cannot be read: plain text is refused in its name. */
  readonly refusedBy?: ConfigObject<UnreadablePolicy>;
}

/** A policy as written, or the strictest there is in place of one that cannot be read. */
interface PeerPolicy extends PeerAuthentication {
  readonly unreadable?: ConfigObject<UnreadablePolicy>;
}
type Policy = ConfigObject<PeerPolicy>;

/**
 * The policies that may apply to workloads of a namespace: its own and those of the root namespace. Those that cannot be
 * read come first, so that they win over others of their scope.
 */
export function policiesOf(snapshot: Snapshot, namespace: string): readonly Policy[] {
  const key = `${snapshot.mesh.rootNamespace}/${namespace}`;
  return byNamespace(key, snapshot.peerAuthentications, snapshot.unreadablePolicies);
}

type Unreadable = Snapshot["unreadablePolicies"];

const byNamespace = derived((key: string, policies: readonly Policy[], unreadable: Unreadable): readonly Policy[] => {
  const namespaces = key.split("/");
  const own = ({ metadata }: ConfigObject) => namespaces.includes(metadata.namespace);
  return [...strictest("", unreadable).filter(own), ...policies.filter(own).sort(oldestFirst)];
});

/** What stands in for policies that cannot be read. */
export const strictest = derived((_: string, unreadable: Unreadable): readonly Policy[] =>
  unreadable
    .filter(({ kind }) => kind === "PeerAuthentication")
    .map((policy) => ({
      ...policy,
      spec: { selector: policy.spec.selector, mtls: { mode: "STRICT" as const }, unreadable: policy },
    })),
);

/** What a client may assume of a service: the mode of its namespace, else of the mesh. Workload policies are not known. */
export function namespaceMode(snapshot: Snapshot, namespace: string): MtlsMode {
  return wideMode(`${snapshot.mesh.rootNamespace}/${namespace}`, policiesOf(snapshot, namespace));
}

const wideMode = derived((key: string, policies: readonly Policy[]): MtlsMode => {
  const [rootNamespace = "", namespace = ""] = key.split("/");
  const wide = policies.filter((policy) => !hasSelector(policy) || selectsUnknown(policy));
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
  const ofWorkload =
    policies.find(selectsUnknown) ??
    policies.find((policy) => selects(policy, workload) && policy.metadata.namespace !== rootNamespace);
  const deciding = [ofWorkload, ofNamespace, ofMesh].find((policy) => isSet(modeOf(policy?.spec.mtls)));
  const mode = modeOf(deciding?.spec.mtls) ?? "PERMISSIVE";
  const ports = Object.entries(ofWorkload?.spec.portLevelMtls ?? {}).map(([port, mtls]) => [
    port,
    modeOf(mtls) ?? mode,
  ]);
  const refusedBy = deciding?.spec.unreadable;
  return { mode, ports: Object.fromEntries(ports), ...(refusedBy && { refusedBy }) };
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

/** It cannot be read whom it selects: it may be any workload. */
function selectsUnknown({ spec }: Policy): boolean {
  return spec.unreadable?.spec.selectsUnknown === true;
}

function modeOf(mtls: MutualTls | undefined): MtlsMode | undefined {
  return mtls?.mode === "UNSET" ? undefined : mtls?.mode;
}

function isSet<T>(value: T | undefined): value is T {
  return value !== undefined;
}
