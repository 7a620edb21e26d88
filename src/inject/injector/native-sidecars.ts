/** Whether the nodes of a cluster run native sidecars: init containers that stay. */

/** ENABLE_NATIVE_SIDECARS: always, never, or where the nodes can. */
export type NativeSidecarMode = "true" | "false" | "auto";

/** A node, as far as it matters. */
export interface NodeVersion {
  readonly name: string;
  /** `v1.33.1` */
  readonly kubeletVersion: string;
}

/** They are stable from Kubernetes 1.33 on. */
const FIRST_MINOR = 33;

/** The node of the pod decides; a pod that has none yet may get any, so then all of them must be new enough. */
export function usesNativeSidecars(
  mode: NativeSidecarMode,
  nodes: readonly NodeVersion[] | undefined,
  nodeName: string | undefined,
): boolean {
  if (mode !== "auto") return mode === "true";
  if (nodes === undefined) return false;
  const own = nodes.find(({ name }) => name === nodeName);
  return own === undefined ? nodes.every(isNewEnough) : isNewEnough(own);
}

function isNewEnough({ kubeletVersion }: NodeVersion): boolean {
  const minor = /^v?\d+\.(\d+)/.exec(kubeletVersion)?.[1];
  return minor !== undefined && Number(minor) >= FIRST_MINOR;
}
