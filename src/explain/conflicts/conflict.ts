/** Two objects that claim the same: one of them has it. */

/** Metrics of Istio under which conflicts are counted. */
export type ConflictMetric =
  | "pilot_vservice_dup_domain"
  | "pilot_destrule_subsets"
  | "pilot_total_rejected_configs"
  | "pilot_duplicate_envoy_clusters"
  | "pilot_conflict_inbound_listener"
  | "pilot_conflict_outbound_listener_tcp_over_current_tcp";

/** Conflicts as they are found; undefined where the search may be interrupted. */
export type Search = Iterable<Conflict | undefined>;

/** A claim that two objects make. */
export interface Conflict {
  readonly metric: ConflictMetric;
  /** What both claim, such as `host "a.example.com" for sidecars`. */
  readonly what: string;
  /** `kind/namespace/name` of the object whose claim counts. */
  readonly winner: string;
  readonly loser: string;
  readonly loserNamespace: string;
  /** What becomes of the other one. */
  readonly outcome: string;
}

/** One line about a conflict, with both owners. */
export function conflictText({ what, winner, loser, outcome }: Conflict): string {
  return `${loser}: ${what} is taken by ${winner}: ${outcome}`;
}

/** What was claimed so far, and by whom. */
export class Claims<Owner> {
  readonly #owners = new Map<string, Owner[]>();

  /** Claims something; returns the first of those before that cannot have it too. */
  claim(what: string, owner: Owner, isRival: (before: Owner, owner: Owner) => boolean): Owner | undefined {
    const owners = this.#owners.get(what);
    if (owners === undefined) {
      this.#owners.set(what, [owner]);
      return undefined;
    }
    const rival = owners.find((before) => isRival(before, owner));
    owners.push(owner);
    return rival;
  }
}
