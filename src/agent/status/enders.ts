/** Who may end the agent, or its Envoy's part in the traffic, through the status port. */
import type { AgentContext } from "../agent-context.ts";
import type { IncomingRequest } from "./answer.ts";

/**
 * - `everybody` on loopback: in a pod, whose containers belong together and may be of different accounts. Jobs end their proxy so.
 * - `own account`: on a machine, where other programs listen and connect on the same loopback.
 * - `nobody`: under `serve`, where whoever runs the workloads decides which of them run.
 */
export type Enders = "everybody" | "own account" | "nobody";

type Context = Pick<AgentContext, "config" | "place">;

export function endersOf({ config, place }: Context): Enders {
  if (place.connect !== undefined) return "nobody";
  const { instanceIp, hostIp, platform } = config;
  // A pod with the address of its node shares the node's loopback.
  const isOnHostNetwork = instanceIp !== "" && instanceIp === hostIp;
  return platform.kubernetes && !isOnHostNetwork ? "everybody" : "own account";
}

const ROOT = 0;

/** Why a caller may not end the agent; undefined when it may. */
export async function enderProblem(
  enders: Enders,
  { callerAccount }: Pick<IncomingRequest, "callerAccount">,
): Promise<string | undefined> {
  if (enders === "everybody") return undefined;
  if (enders === "nobody") return "An agent that serves several workloads is not ended over HTTP";
  const account = await callerAccount();
  if (account !== undefined && (account === ROOT || account === process.getuid?.())) return undefined;
  return "Outside of a pod only the agent's own account and root are allowed";
}
