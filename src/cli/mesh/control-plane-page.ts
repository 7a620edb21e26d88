/** Pages of a control plane: of that of a mesh which is up, of one that runs alone on this machine, or of one at an address. */
import { MeshError } from "#lib/mesh-error.ts";
import { requestText } from "#lib/net/http-text.ts";
import type { ChoiceOptions } from "../terminal/options.ts";
import { askMember, memberNamed } from "./ask-member.ts";

/** The control plane's name among the members of a mesh. */
export const CONTROL_PLANE = "istiod";
const MONITORING_PORT = 15_014;
/** Where one that was started by itself has its pages. */
const ALONE = `127.0.0.1:${MONITORING_PORT}`;
const TIMEOUT_MS = 10_000;

export interface PageOptions extends ChoiceOptions {
  /** Its monitoring or HTTP address, in place of a mesh that is up. */
  readonly address?: string;
}

/** The text of a page, such as `/debug/syncz`. */
export async function controlPlanePage(path: string, { address, mesh, state }: PageOptions): Promise<string> {
  if (address !== undefined) return pageAt(address, path);
  const choice = { ...(mesh !== undefined && { mesh }), ...(state !== undefined && { state }) };
  try {
    return await askMember(await memberNamed(CONTROL_PLANE, choice), { method: "GET", port: MONITORING_PORT, path });
  } catch (thrown) {
    const isNoneUp = thrown instanceof MeshError && thrown.code === "MESH_NOT_UP" && Object.keys(choice).length === 0;
    if (!isNoneUp) throw thrown;
    return await pageAt(ALONE, path).catch(() => {
      throw new MeshError("MESH_NOT_UP", `${thrown.message}, or name a control plane by --address`);
    });
  }
}

async function pageAt(address: string, path: string): Promise<string> {
  try {
    const { status, text } = await requestText(`http://${address}${path}`, { timeoutMs: TIMEOUT_MS });
    if (status !== 200) throw new Error(`status ${status}: ${text}`);
    return text;
  } catch (cause) {
    throw new MeshError("CONTROL_PLANE_UNREACHABLE", `Cannot read http://${address}${path}`, { cause });
  }
}
