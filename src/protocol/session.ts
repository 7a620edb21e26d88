/**
 * All types of one stream, and the order in which they are sent so that no request fails on the way:
 *
 * ```
 *   clusters --> endpoints ==> listeners ==> routes ==> what nobody names any more is removed
 *       \_____________________/^
 * ```
 *
 * A double arrow waits for the answer to what is before it, listeners for that to the clusters. Envoy answers clusters
 * once they are warm, that is, once it has their endpoints: so endpoints must not wait for that answer, and after it
 * listeners and routes may name the clusters. One that never gets warm holds the others up for `WARM_MS` only. A cluster
 * that was sent is followed by its endpoints even if those did not change, because Envoy warms it again. Types outside
 * this order go when they have something to say; only new names wait until the proxy knows where they lead. A client that has
 * nothing, and asks for listeners before it answered anything, is no Envoy, which first wants its clusters warm: it may be one that
 * never answers, and is told the rest after `ANSWER_MS`.
 */
import { ByType } from "./by-type.ts";
import type { DeltaRequest } from "./messages/delta-request.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
  WILDCARD_TYPES,
} from "./messages/type-urls.ts";
import { findResource, type Resource } from "./resource.ts";
import { isShared, SharedSteps, type States, type Targets } from "./shared-steps.ts";
import { type Draft, emit, type Form, givenUp, type Subscription, type Verdict } from "./subscription.ts";

export interface Session<R extends Resource> {
  readonly kind: StreamKind;
  readonly types: States<R>;
  /** With others that are told the same. */
  readonly steps: SharedSteps<R>;
  /** When clusters were last sent. */
  readonly clustersAt: number;
  /** When the proxy last spoke of listeners or routes. */
  readonly routedAt: number;
  /** When it last spoke of endpoints. */
  readonly endpointsAt: number;
}

/** Delta or state-of-the-world xDS. */
export type StreamKind = "delta" | "state";

/** What to do next on a stream. */
export type Next<R extends Resource> =
  | { readonly kind: "send"; readonly typeUrl: string; readonly draft: Draft<R> }
  /** Until the proxy answers, or until that time. */
  | { readonly kind: "wait"; readonly until: number | undefined }
  /** Everything was sent, and clusters, listeners and routes answered. */
  | { readonly kind: "idle" };

/** A new listener takes over from the old one when it has its routes, shortly after it was acknowledged. */
export const REMOVE_AFTER_MS = 200;
/** Clusters are warm within milliseconds, even on a busy machine; one that is not may wait for a secret that never comes. */
export const WARM_MS = 2_000;
/** Thousands of new clusters take Envoy seconds to read; it asks for their endpoints when it has. */
export const READ_MS = 20_000;
/** Whoever answers at all does so by then, or has nothing to lose. */
export const ANSWER_MS = 1_000;

const ORDER = [CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE];
const REMOVED_LAST = [CLUSTER_TYPE, ENDPOINT_TYPE, ROUTE_TYPE];

const IDLE = { kind: "idle" } as const;

/** A stream on which nothing was said yet. */
export function newSession<R extends Resource>(
  kind: StreamKind = "delta",
  steps: SharedSteps<R> = new SharedSteps(),
): Session<R> {
  return { kind, types: ByType.empty(), steps, clustersAt: 0, routedAt: 0, endpointsAt: 0 };
}

/** A request came. */
export function receive<R extends Resource>(
  session: Session<R>,
  request: DeltaRequest,
  now: number,
): { readonly session: Session<R>; readonly verdict: Verdict<R> } {
  const known = session.types.get(request.typeUrl);
  const step =
    known === undefined
      ? {
          subscription: session.steps.subscribe(request, formOf(session.kind, request.typeUrl)),
          verdict: { kind: "none" } as const,
        }
      : session.steps.onRequest(known, request);
  const types = isShared(known, request)
    ? session.steps.change(session.types, request.typeUrl, step.subscription)
    : session.types.with(request.typeUrl, step.subscription);
  const isRouting = request.typeUrl === LISTENER_TYPE || request.typeUrl === ROUTE_TYPE;
  const routedAt = isRouting ? now : session.routedAt;
  const endpointsAt = request.typeUrl === ENDPOINT_TYPE ? now : session.endpointsAt;
  return { session: { ...session, types, routedAt, endpointsAt }, verdict: step.verdict };
}

/** Of clusters and listeners, and of what else comes as a whole, a proxy forgets what a response leaves out. */
function formOf(kind: StreamKind, typeUrl: string): Form {
  if (kind === "delta") return "delta";
  return WILDCARD_TYPES.has(typeUrl) ? "complete" : "partial";
}

/** From now on these are the resources of those types. A type nobody asked for stays as it is. */
export function retargetTypes<R extends Resource>(session: Session<R>, targets: Targets<R>): Session<R> {
  const types = session.steps.retargetAll(session.types, targets);
  return types === session.types ? session : { ...session, types };
}

/** The next response of the stream, in the right order. */
export function nextResponse<R extends Resource>(session: Session<R>, now: number): Next<R> {
  const ordered = nextInOrder(session, now);
  if (ordered.kind === "send") return ordered;
  for (const typeUrl of session.types.keys()) {
    const subscription = session.types.get(typeUrl);
    if (subscription === undefined || ORDER.includes(typeUrl)) continue;
    // The first table is what a start waits for; of a later one, a name that resolves before its routes are there is a 503.
    if (typeUrl === NAME_TABLE_TYPE && ordered.kind === "wait" && subscription.sent !== "") continue;
    const draft = session.steps.emit(subscription, { removals: true });
    if (draft !== undefined) return { kind: "send", typeUrl, draft };
  }
  return ordered;
}

/** Whether everything was sent, and what others wait for answered. */
export function isIdle<R extends Resource>(session: Session<R>, now: number): boolean {
  const { steps, types } = session;
  if (steps.isIdle(types)) return true;
  if (nextResponse(session, now).kind !== "idle") return false;
  // An answer that was given up may still come, for which the time counts.
  if (types.get(CLUSTER_TYPE)?.pending === undefined) steps.noteIdle(types);
  return true;
}

/** Under which nonce a response went, and when. */
export interface Sending {
  readonly nonce: string;
  readonly sentAt: number;
}

/** The state once the response was sent. */
export function sent<R extends Resource>(
  session: Session<R>,
  response: { readonly typeUrl: string; readonly draft: Draft<R> },
  { nonce, sentAt }: Sending,
): Session<R> {
  const after = session.steps.afterSending(response.draft, nonce);
  const types = session.steps.change(session.types, response.typeUrl, after);
  if (response.typeUrl !== CLUSTER_TYPE) return { ...session, types };
  const clustersAt = sentAt;
  const endpoints = types.get(ENDPOINT_TYPE);
  if (endpoints === undefined) return { ...session, types, clustersAt };
  const owing = session.steps.owe(endpoints, response.draft);
  return { ...session, types: session.steps.change(types, ENDPOINT_TYPE, owing), clustersAt };
}

function nextInOrder<R extends Resource>(session: Session<R>, now: number): Next<R> {
  /** The first type whose answer the others wait for. */
  let waitsFor: string | undefined;
  /** Of this type and those before it: nothing that it uses can break, so its answers are not waited for without end. */
  let hasNothing = true;
  const answersBy = session.clustersAt + ANSWER_MS;
  for (const typeUrl of ORDER) {
    const subscription = current(session, typeUrl, now);
    if (subscription === undefined) continue;
    hasNothing &&= isNew(subscription);
    if (waitsFor !== undefined && typeUrl !== ENDPOINT_TYPE && (!hasNothing || now < answersBy)) continue;
    if (subscription.pending !== undefined && typeUrl !== ENDPOINT_TYPE) waitsFor ??= typeUrl;
    const draft = session.steps.emit(subscription, { removals: typeUrl === LISTENER_TYPE });
    if (draft !== undefined) return { kind: "send", typeUrl, draft };
  }
  if (waitsFor === undefined) return nextRemoval(session, now);
  if (hasNothing && now < answersBy) return { kind: "wait", until: answersBy };
  return { kind: "wait", until: waitsFor === CLUSTER_TYPE ? warmBy(session) : undefined };
}

/** Whether the proxy has nothing of the type: it kept nothing, and answered nothing yet. */
function isNew<R extends Resource>({ keeps, acknowledged, rejected }: Subscription<R>): boolean {
  return !keeps && acknowledged === "" && rejected === "";
}

/** When clusters that were sent are not waited for any longer; undefined when they were answered. */
function warmBy<R extends Resource>({ types, clustersAt, endpointsAt }: Session<R>): number | undefined {
  const { pending, overdue = [] } = types.get(CLUSTER_TYPE) ?? {};
  if (pending === undefined) return undefined;
  // While an older answer is owed, this one cannot come either.
  if (overdue.length > 0) return clustersAt;
  const readBy = clustersAt + READ_MS;
  const isRead = endpointsAt >= clustersAt || pending.resources.every(({ awaits }) => awaits === undefined);
  return isRead ? Math.min(readBy, Math.max(clustersAt, endpointsAt) + WARM_MS) : readBy;
}

/** A subscription as it is by now: an answer about clusters that takes too long is given up. */
function current<R extends Resource>(session: Session<R>, typeUrl: string, now: number): Subscription<R> | undefined {
  const subscription = session.types.get(typeUrl);
  if (typeUrl !== CLUSTER_TYPE || subscription === undefined) return subscription;
  return now >= (warmBy(session) ?? Number.POSITIVE_INFINITY) ? givenUp(subscription) : subscription;
}

function nextRemoval<R extends Resource>(session: Session<R>, now: number): Next<R> {
  if (REMOVED_LAST.every((typeUrl) => (session.types.get(typeUrl)?.leftover.size ?? 0) === 0)) return IDLE;
  const keep = stillUsed(session);
  for (const typeUrl of REMOVED_LAST) {
    const subscription = current(session, typeUrl, now);
    if (subscription === undefined || subscription.leftover.isSubsetOf(keep)) continue;
    const from = session.routedAt + REMOVE_AFTER_MS;
    if (now < from) return { kind: "wait", until: from };
    // Clusters that were given up, on a new stream: what its listeners use is not known before it speaks of them.
    if (subscription !== session.types.get(typeUrl) && session.routedAt === 0)
      return { kind: "wait", until: undefined };
    const draft = emit(subscription, { removals: true, keep });
    if (draft !== undefined) return { kind: "send", typeUrl, draft };
  }
  return IDLE;
}

/**
 * Leftovers that something still uses: endpoints whose cluster exists, and what is named by a listener or route that the
 * proxy kept because it rejected the newer version.
 */
function stillUsed<R extends Resource>(session: Session<R>): ReadonlySet<string> {
  const leftover = REMOVED_LAST.flatMap((typeUrl) => [...(session.types.get(typeUrl)?.leftover ?? [])]);
  const clusters = session.types.get(CLUSTER_TYPE)?.target ?? [];
  const users = [LISTENER_TYPE, ROUTE_TYPE]
    .flatMap((typeUrl) => [...(session.types.get(typeUrl)?.held.values() ?? [])])
    .flatMap(({ good }) => (good === undefined ? [] : [asBuffer(good.value)]));
  const isUsed = (name: string) =>
    findResource(clusters, name) !== undefined || users.some((user) => user.includes(name));
  return new Set(leftover.filter(isUsed));
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
