/**
 * What several objects claim, and who has it. They are resolved as by Istio, which is to say that older objects win; here it
 * is said aloud, with both owners.
 */
import type { Steps } from "#lib/async/steps.ts";
import type { Snapshot } from "#model/snapshot.ts";
import type { Conflict, Search } from "./conflict.ts";
import { gatewayConflicts } from "./gateways.ts";
import { hostConflicts, subsetConflicts } from "./routes.ts";
import { addressConflicts, inboundConflicts } from "./services.ts";

const SEARCHES: readonly ((snapshot: Snapshot) => Search)[] = [
  hostConflicts,
  subsetConflicts,
  gatewayConflicts,
  addressConflicts,
  inboundConflicts,
];

/** All conflicts of a mesh, in steps. */
export function* conflictSteps(snapshot: Snapshot): Steps<readonly Conflict[]> {
  const conflicts: Conflict[] = [];
  for (const search of SEARCHES) {
    for (const found of search(snapshot)) {
      if (found !== undefined) conflicts.push(found);
      yield;
    }
  }
  return conflicts;
}
