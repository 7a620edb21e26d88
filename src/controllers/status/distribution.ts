/** How far objects have come to proxies: what one replica knows, what all of them know together, and the conditions of it. */
import type { Conflict } from "#explain/conflicts/conflict.ts";
import type { PushHistory } from "#model/push-record.ts";

/** What is behind of one object. */
export interface Lag {
  /** Proxies that have not answered yet. */
  readonly pending: number;
  /** Proxies that refused it. */
  readonly rejected: number;
  /** What the last of these said. */
  readonly error: string;
}

/** Objects that are not mentioned have come to all proxies. */
export interface Distribution {
  readonly proxies: number;
  /** By `Kind/namespace/name`. */
  readonly lags: Readonly<Record<string, Lag>>;
}

export interface Condition {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

/** What this replica knows of the proxies that are connected to it. */
export function localDistribution(history: PushHistory, nodes: ReadonlySet<string>): Distribution {
  const changes = new Map(history.changes().map((change) => [change.id, change.objects.map(nameOf)]));
  const lastChange = new Map<string, number>();
  for (const [id, objects] of changes) for (const object of objects) lastChange.set(object, id);
  const pending = new Map<string, Set<string>>();
  const rejected = new Map<string, Set<string>>();
  const errors = new Map<string, string>();
  const note = (table: Map<string, Set<string>>, object: string, node: string) => {
    table.set(object, (table.get(object) ?? new Set()).add(node));
  };
  for (const { node, change, result, culprits = [], error = "" } of history.pushes()) {
    if (!nodes.has(node)) continue;
    if (result === "sent") for (const object of changes.get(change) ?? []) note(pending, object, node);
    if (result !== "rejected") continue;
    // What was refused is not sent again before the object changes.
    for (const object of culprits.filter((culprit) => (lastChange.get(culprit) ?? 0) <= change)) {
      note(rejected, object, node);
      errors.set(object, error);
    }
  }
  const lags = [...new Set([...pending.keys(), ...rejected.keys()])].sort().map((object) => {
    const refusing = rejected.get(object) ?? new Set();
    const waiting = (pending.get(object) ?? new Set<string>()).difference(refusing);
    return [object, { pending: waiting.size, rejected: refusing.size, error: errors.get(object) ?? "" }] as const;
  });
  return { proxies: nodes.size, lags: Object.fromEntries(lags) };
}

/** What all replicas know together. */
export function joinedDistribution(reports: readonly Distribution[]): Distribution {
  const lags: Record<string, Lag> = {};
  for (const report of reports) {
    for (const [object, { pending, rejected, error }] of Object.entries(report.lags)) {
      const before = Object.hasOwn(lags, object) ? lags[object] : undefined;
      lags[object] = {
        pending: (before?.pending ?? 0) + pending,
        rejected: (before?.rejected ?? 0) + rejected,
        error: error || (before?.error ?? ""),
      };
    }
  }
  return { proxies: reports.reduce((sum, { proxies }) => sum + proxies, 0), lags };
}

/** What else is known of an object. */
export interface ObjectFacts {
  /** Why it has no effect, or its last good version is used instead of it. */
  readonly invalid?: string | undefined;
  /** The object was never valid: there is no such version. */
  readonly isNew?: boolean;
  /** In which another object has what it claims. */
  readonly conflicts?: readonly Conflict[] | undefined;
}

/** The conditions of an object. */
export function conditionsOf(
  object: string,
  distribution: Distribution,
  { invalid, isNew = false, conflicts = [] }: ObjectFacts = {},
): readonly Condition[] {
  const { proxies } = distribution;
  const texts = conflicts.map(({ what, winner, outcome }) => `${what} is taken by ${winner}: ${outcome}`);
  const message = `${texts.slice(0, MOST_TEXTS).join("; ")} (${texts.length} in all, ${proxies} proxies)`;
  const disputed = { type: CONFLICTED, status: "True", reason: "Conflict", message } as const;
  const held = isNew ? "not valid" : "not valid, the last good version holds";
  const reason = invalid && `${held}: ${invalid}`;
  return [...distributed(object, distribution, reason), ...(texts.length === 0 ? [] : [disputed])];
}

function distributed(
  object: string,
  { proxies, lags }: Distribution,
  invalid: string | undefined,
): readonly Condition[] {
  const { pending, rejected, error } = (Object.hasOwn(lags, object) && lags[object]) || NO_LAG;
  if (invalid !== undefined) {
    return [{ type: RECONCILED, status: "False", reason: "Invalid", message: invalid }];
  }
  const current = Math.max(0, proxies - pending - rejected);
  const isEverywhere = current === proxies;
  const reconciled: Condition = {
    type: RECONCILED,
    status: isEverywhere ? "True" : "False",
    reason: isEverywhere ? "Distributed" : rejected > 0 ? "Rejected" : "Pending",
    message: `${current}/${proxies} proxies up to date.`,
  };
  if (rejected === 0) return [reconciled];
  const message = `${rejected}/${proxies} proxies rejected it and keep what they had: ${error}`;
  return [reconciled, { type: REJECTED, status: "True", reason: "NACK", message }];
}

const NO_LAG: Lag = { pending: 0, rejected: 0, error: "" };
const RECONCILED = "Reconciled";
const REJECTED = "Rejected";
const CONFLICTED = "Conflicted";
/** A status is read by people. */
const MOST_TEXTS = 3;

/** Types of conditions that are ours; those of others are left alone. */
export const OWN_CONDITIONS: ReadonlySet<string> = new Set([RECONCILED, REJECTED, CONFLICTED]);

/** Without the sign of what happened to it. */
function nameOf(change: string): string {
  return change.slice(2);
}
