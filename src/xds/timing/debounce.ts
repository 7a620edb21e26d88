/**
 * When a change goes out. Endpoints go at once when it was quiet before: a moved pod must not wait. Configuration waits
 * until nothing came for a moment, since one `apply` is many events, and pushing the first would route to what only the
 * second brings. For the same reason a change that refers to something missing waits a little longer.
 */

/** A row of changes that go out together. */
export interface Batch {
  /** Times in milliseconds. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** Nothing but endpoints changed. */
  readonly endpointsOnly: boolean;
}

export interface Surroundings {
  /** When the batch before went out. */
  readonly releasedAt: number;
  /** The newest configuration refers to something that is not there, and the one that went out last did not. */
  readonly unresolved: boolean;
}

/** What an operator asked for; what is left out is up to us. */
export interface DebounceSettings {
  /** PILOT_DEBOUNCE_AFTER: silence after which changes go out, endpoints too, whatever they refer to. */
  readonly afterMs?: number;
  /** PILOT_DEBOUNCE_MAX: the longest that anything waits for silence. */
  readonly maxMs?: number;
  /** PILOT_ENABLE_EDS_DEBOUNCE: whether changes of endpoints alone wait at all. */
  readonly endpointsWait?: boolean;
}

/** Silence after which configuration is complete. */
const QUIET_MS = 5;
/** A batch that grows for so long is a flood, and waits for as much silence. A missing reference may take as long. */
const FLOOD_MS = 100;
/** The longest that anything waits; endpoints wait less, since old ones mean failed requests. */
const MAX_MS = 10_000;
const MAX_ENDPOINTS_MS = 1_000;

/** One more change. */
export function withChange(
  batch: Batch | undefined,
  change: { readonly endpointsOnly: boolean; readonly at: number },
): Batch {
  const { endpointsOnly, at } = change;
  if (batch === undefined) return { firstAt: at, lastAt: at, endpointsOnly };
  return { firstAt: batch.firstAt, lastAt: at, endpointsOnly: batch.endpointsOnly && endpointsOnly };
}

/** When the batch is to go out, if nothing else comes. */
export function dueAt(batch: Batch, { releasedAt, unresolved }: Surroundings, settings: DebounceSettings = {}): number {
  const { firstAt, lastAt, endpointsOnly } = batch;
  const { afterMs, maxMs = MAX_MS, endpointsWait } = settings;
  if (endpointsOnly && endpointsWait === false) return firstAt;
  if (afterMs !== undefined) return Math.min(lastAt + afterMs, firstAt + Math.max(afterMs, maxMs));
  const isCalm = firstAt === lastAt && firstAt - releasedAt >= QUIET_MS;
  if (endpointsOnly && isCalm && endpointsWait === undefined) return firstAt;
  const quiet = lastAt - firstAt < FLOOD_MS ? QUIET_MS : FLOOD_MS;
  const wanted = Math.max(lastAt + quiet, unresolved ? firstAt + FLOOD_MS : 0);
  return Math.min(wanted, firstAt + (endpointsOnly ? Math.min(MAX_ENDPOINTS_MS, maxMs) : maxMs));
}
