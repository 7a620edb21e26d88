/**
 * What several objects claim, and who has it. They are resolved as by Istio, which is to say that older objects win; here it
 * is said aloud, with both owners.
 */
import type { ConfigObject } from "#config/config-object.ts";
import type { Steps } from "#lib/async/steps.ts";
import type { Snapshot } from "#model/snapshot.ts";
import type { Conflict, Search } from "./conflict.ts";
import { gatewayConflicts } from "./gateways.ts";
import { hostConflicts, subsetConflicts } from "./routes.ts";
import {
  addressConflicts,
  type Definitions,
  definitionConflicts,
  definitionsOf,
  inboundConflicts,
} from "./services.ts";

const SEARCHES: readonly ((snapshot: Snapshot, definitions: Definitions) => Search)[] = [
  hostConflicts,
  subsetConflicts,
  gatewayConflicts,
  definitionConflicts,
  addressConflicts,
  inboundConflicts,
];

/** All conflicts of a mesh, in steps; its objects tell who the owners are. */
export function* conflictSteps(snapshot: Snapshot, objects: readonly ConfigObject[]): Steps<readonly Conflict[]> {
  const conflicts: Conflict[] = [];
  const definitions = definitionsOf(objects, snapshot.features.domain);
  for (const search of SEARCHES) {
    for (const found of search(snapshot, definitions)) {
      if (found !== undefined) conflicts.push(found);
      yield;
    }
  }
  return conflicts;
}
