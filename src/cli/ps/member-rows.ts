import { type MeshStatus, restartsOf } from "#standalone/status/status.ts";
import type { MemberRow } from "./mesh-table.ts";

/** What the tables show of each member. */
export function rowsOf({ members }: MeshStatus): MemberRow[] {
  return members.map((member) => ({ ...member, restarts: restartsOf(member) }));
}
