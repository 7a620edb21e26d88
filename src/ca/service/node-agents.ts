/**
 * Agents of nodes: accounts on a list may ask for certificates of the workloads that run on the same node, and of no
 * others.
 */
import { parseSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { Caller } from "#model/ports.ts";

/** What is known of a pod. */
export interface NodePod {
  readonly uid: string;
  readonly serviceAccount: string;
  readonly node: string;
}

/** Where pods are looked up. */
export interface NodePods {
  pod(namespace: string, name: string): Promise<NodePod | undefined>;
  /** Whether a pod of the account runs on the node. */
  runs(account: {
    readonly namespace: string;
    readonly serviceAccount: string;
    readonly node: string;
  }): Promise<boolean>;
}

export interface NodeAgents {
  /** `namespace/account` each. */
  readonly trustedAccounts: readonly string[];
  readonly pods: NodePods;
}

/** Why a caller may not act for an identity; undefined when it may. */
export async function impersonationRefusal(
  { namespace, serviceAccount, pod = "", podUid }: Caller,
  wanted: string,
  { trustedAccounts, pods }: NodeAgents,
): Promise<string | undefined> {
  if (!trustedAccounts.includes(`${namespace}/${serviceAccount}`)) {
    return `"${namespace}/${serviceAccount}" is not allowed to impersonate others`;
  }
  const identity = parseSpiffeId(wanted);
  if (identity === undefined || !isName(identity.namespace) || !isName(identity.serviceAccount)) {
    return "failed to validate impersonated identity";
  }
  const own = pod === "" ? undefined : await pods.pod(namespace, pod);
  if (own === undefined) return `pod ${namespace}/${pod} not found`;
  // One that was made again under the same name; the caller finds out and asks again.
  if (own.uid !== podUid) return "pod found, but UID does not match";
  if (own.serviceAccount !== serviceAccount) return "pod found, but ServiceAccount does not match";
  if (own.node === "") return `pod ${namespace}/${pod} is on no node`;
  if (await pods.runs({ ...identity, node: own.node })) return undefined;
  return `no pods of "${identity.namespace}/${identity.serviceAccount}" on the node "${own.node}"`;
}

/** Names of Kubernetes: what else is in an identity is no part of a question to its API server. */
function isName(text: string): boolean {
  return /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(text);
}
