import type { MemberRow } from "#cli/mesh-table.ts";
import { type MeshStatus, restartsOf } from "#standalone/run/status.ts";

/** What the tables show of each member. */
export function rowsOf({ members }: MeshStatus): MemberRow[] {
  return members.map((member) => ({ ...member, restarts: restartsOf(member) }));
}
