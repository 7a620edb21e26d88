/**
 * All types of one stream, and the order in which they are answered so that no request fails on the way:
 *
 * ```
 *   clusters -> their endpoints -> listeners -> routes -> what nobody names any more is removed
 * ```
 *
 * Each arrow waits for the answer to what is before it. A cluster that was sent is followed by its endpoints even if those
 * did not change, because Envoy warms it again; listeners and routes wait until Envoy has asked for the endpoints of the
 * clusters that are new to it. Types outside this order go when they have something to say.
 */
import type { DeltaRequest } from "./delta-request.ts";
import { findResource, type Layers, type Resource } from "./resource.ts";
import {
  afterSending,
  type Draft,
  emit,
  onRequest,
  retarget,
  type Subscription,
  subscribe,
  type Verdict,
} from "./subscription.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "./type-urls.ts";

export interface Session<R extends Resource> {
  readonly types: ReadonlyMap<string, Subscription<R>>;
  /** Endpoints that Envoy will ask for because it was sent a cluster it did not have. */
  readonly expected: ReadonlySet<string>;
  /** How long to wait for that. */
  readonly expectedUntil: number;
  /** When the proxy last spoke of listeners or routes. */
  readonly routedAt: number;
}

/** What to do next on a stream. */
export type Next<R extends Resource> =
  | { readonly kind: "send"; readonly typeUrl: string; readonly draft: Draft<R> }
  /** Until the proxy answers, or until that time. */
  | { readonly kind: "wait"; readonly until: number | undefined }
  /** Everything was sent and answered. */
  | { readonly kind: "idle" };

/** Envoy asks for endpoints right behind its answer to the clusters; a proxy that has not by then never will. */
export const EXPECT_ENDPOINTS_MS = 500;
/** A new listener takes over from the old one when it has its routes, shortly after it was acknowledged. */
export const REMOVE_AFTER_MS = 200;

const ORDER = [CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE];
const NO_NAMES: ReadonlySet<string> = new Set();
const REMOVED_LAST = [CLUSTER_TYPE, ENDPOINT_TYPE, ROUTE_TYPE];

/** A stream on which nothing was said yet. */
export function newSession<R extends Resource>(): Session<R> {
  return { types: new Map(), expected: NO_NAMES, expectedUntil: 0, routedAt: 0 };
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
      ? { subscription: subscribe<R>(request), verdict: { kind: "none" } as const }
      : onRequest(known, request);
  const types = new Map(session.types).set(request.typeUrl, step.subscription);
  return { session: { ...session, types, ...heard(session, request, now) }, verdict: step.verdict };
}

/** What a request tells about the order of things. */
function heard<R extends Resource>(session: Session<R>, request: DeltaRequest, now: number): Partial<Session<R>> {
  switch (request.typeUrl) {
    case CLUSTER_TYPE:
      return session.expected.size === 0 ? {} : { expectedUntil: now + EXPECT_ENDPOINTS_MS };
    case ENDPOINT_TYPE:
      return session.expected.size === 0 ? {} : { expected: session.expected.difference(new Set(request.subscribe)) };
    case LISTENER_TYPE:
    case ROUTE_TYPE:
      return { routedAt: now };
    default:
      return {};
  }
}

/** From now on these are the resources of that type. A type nobody asked for stays as it is. */
export function retargetType<R extends Resource>(session: Session<R>, typeUrl: string, target: Layers<R>): Session<R> {
  const known = session.types.get(typeUrl);
  if (known === undefined) return session;
  const subscription = retarget(known, target);
  return subscription === known ? session : { ...session, types: new Map(session.types).set(typeUrl, subscription) };
}

/** The next response of the stream, in the right order. */
export function nextResponse<R extends Resource>(session: Session<R>, now: number): Next<R> {
  const ordered = nextInOrder(session, now);
  if (ordered.kind === "send") return ordered;
  for (const [typeUrl, subscription] of session.types) {
    if (ORDER.includes(typeUrl)) continue;
    const draft = emit(subscription, { removals: true });
    if (draft !== undefined) return { kind: "send", typeUrl, draft };
  }
  return ordered;
}

/** The state once the response was sent under that nonce. */
export function sent<R extends Resource>(
  session: Session<R>,
  response: { readonly typeUrl: string; readonly draft: Draft<R> },
  nonce: string,
): Session<R> {
  const types = new Map(session.types).set(response.typeUrl, afterSending(response.draft, nonce));
  const endpoints = types.get(ENDPOINT_TYPE);
  if (response.typeUrl !== CLUSTER_TYPE || endpoints === undefined) return { ...session, types };
  const awaited = new Set(
    response.draft.resources.map((cluster) => cluster.awaits).filter((name) => name !== undefined),
  );
  const owed = awaited.intersection(endpoints.names);
  types.set(ENDPOINT_TYPE, { ...endpoints, due: endpoints.due.union(owed) });
  return { ...session, types, expected: awaited.difference(owed), expectedUntil: Number.POSITIVE_INFINITY };
}

function nextInOrder<R extends Resource>(session: Session<R>, now: number): Next<R> {
  for (const typeUrl of ORDER) {
    const subscription = session.types.get(typeUrl);
    if (subscription === undefined) continue;
    if (subscription.pending !== undefined) return { kind: "wait", until: undefined };
    if (typeUrl === LISTENER_TYPE && session.expected.size > 0 && now < session.expectedUntil) {
      return { kind: "wait", until: session.expectedUntil };
    }
    const draft = emit(subscription, { removals: typeUrl === LISTENER_TYPE });
    if (draft !== undefined) return { kind: "send", typeUrl, draft };
  }
  return nextRemoval(session, now);
}

function nextRemoval<R extends Resource>(session: Session<R>, now: number): Next<R> {
  const keep = stillUsed(session);
  for (const typeUrl of REMOVED_LAST) {
    const subscription = session.types.get(typeUrl);
    if (subscription === undefined || subscription.leftover.isSubsetOf(keep)) continue;
    const from = session.routedAt + REMOVE_AFTER_MS;
    if (now < from) return { kind: "wait", until: from };
    const draft = emit(subscription, { removals: true, keep });
    if (draft !== undefined) return { kind: "send", typeUrl, draft };
  }
  return { kind: "idle" };
}

/**
 * Leftovers that something still uses: endpoints whose cluster exists, and what is named by a listener or route that the
 * proxy kept because it rejected the newer version.
 */
function stillUsed<R extends Resource>(session: Session<R>): ReadonlySet<string> {
  const leftover = REMOVED_LAST.flatMap((typeUrl) => [...(session.types.get(typeUrl)?.leftover ?? [])]);
  if (leftover.length === 0) return NO_NAMES;
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
