/** Pages of a control plane: of that of a mesh which is up, or of one at an address. */
import { MeshError } from "#lib/mesh-error.ts";
import { askMember, memberNamed } from "./ask-member.ts";
import type { ChoiceOptions } from "./options.ts";

/** The control plane's name among the members of a mesh. */
export const CONTROL_PLANE = "istiod";
const MONITORING_PORT = 15_014;
const TIMEOUT_MS = 10_000;

export interface PageOptions extends ChoiceOptions {
  /** Its monitoring or HTTP address, in place of a mesh that is up. */
  readonly address?: string;
}

/** The text of a page, such as `/debug/syncz`. */
export async function controlPlanePage(path: string, { address, mesh, state }: PageOptions): Promise<string> {
  if (address === undefined) {
    const choice = { ...(mesh !== undefined && { mesh }), ...(state !== undefined && { state }) };
    return askMember(await memberNamed(CONTROL_PLANE, choice), { method: "GET", port: MONITORING_PORT, path });
  }
  try {
    const answer = await fetch(`http://${address}${path}`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!answer.ok) throw new Error(`status ${answer.status}: ${await answer.text()}`);
    return await answer.text();
  } catch (cause) {
    throw new MeshError("CONTROL_PLANE_UNREACHABLE", `Cannot read http://${address}${path}`, { cause });
  }
}
