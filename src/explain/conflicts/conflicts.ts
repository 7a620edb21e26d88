/**
 * What several objects claim, and who has it. They are resolved as by Istio, which is to say that older objects win; here it
 * is said aloud, with both owners.
 */
import type { ConfigObject } from "#config/schema/config-object.ts";
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

interface Searching {
  readonly search: (snapshot: Snapshot, definitions: () => Definitions) => Search;
  /** What it looks at: where all of it is the same, so is what it finds. */
  readonly of: readonly (keyof Snapshot)[];
}

const SEARCHES: readonly Searching[] = [
  { search: hostConflicts, of: ["virtualServices", "mesh", "features"] },
  { search: subsetConflicts, of: ["destinationRules", "mesh", "features"] },
  { search: gatewayConflicts, of: ["gateways"] },
  { search: (snapshot, definitions) => definitionConflicts(snapshot, definitions()), of: ["services", "features"] },
  { search: (snapshot, definitions) => addressConflicts(snapshot, definitions()), of: ["services", "features"] },
  {
    search: (snapshot, definitions) => inboundConflicts(snapshot, definitions()),
    of: ["services", "endpoints", "features"],
  },
];

/** What one search found, and in what. */
interface Found {
  readonly from: readonly unknown[];
  readonly conflicts: readonly Conflict[];
}

/** Conflicts by search, for the next time. */
export type FoundConflicts = readonly Found[];

/** All conflicts of a mesh, in steps; its objects tell who the owners are. What changed since the last time is searched alone. */
export function* conflictSteps(
  snapshot: Snapshot,
  objects: readonly ConfigObject[],
  last: FoundConflicts = [],
): Steps<FoundConflicts> {
  const found: Found[] = [];
  let known: Definitions | undefined;
  const definitions = () => {
    known ??= definitionsOf(objects, snapshot.features.domain);
    return known;
  };
  for (const [i, { search, of }] of SEARCHES.entries()) {
    const from = of.map((field) => snapshot[field]);
    const before = last[i];
    if (before?.from.every((value, at) => value === from[at])) {
      found.push(before);
      continue;
    }
    const conflicts: Conflict[] = [];
    for (const conflict of search(snapshot, definitions)) {
      if (conflict !== undefined) conflicts.push(conflict);
      yield;
    }
    found.push({ from, conflicts });
  }
  return found;
}
