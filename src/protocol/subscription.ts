/**
 * What one proxy wants and has of one resource type, over either kind of xDS. A value: each step gives a new one, and what is to
 * be sent follows from it.
 *
 * ```
 *   request ----> onRequest() --+                     +--> emit() --> response (at most one without an answer)
 *                               +--> Subscription  ---+
 *   new layers -> retarget() ---+   (due, leftover)
 * ```
 *
 * `retarget` notes what differs from what the proxy has, `onRequest` notes what it asks for, both as names that are *due*;
 * `emit` looks the names up and makes a response. Nothing is sent before the last response was answered, or given up
 * (`overdue`): Envoy keeps its answer to clusters back until the last of them is warm, and one that waits for a secret which
 * never comes is never warm.
 *
 * Over state-of-the-world xDS all is the same but how it is said: where a response has to hold everything (`complete`), what
 * did not change is repeated in it, and what is left out is gone.
 */
import { hasSameItems } from "#lib/collections/same-items.ts";
import { chosen, isUntold, lastGood, NONE, NOTHING, onAnswer } from "./answers.ts";
import { changesBetween } from "./changes.ts";
import { editedSet } from "./edited-set.ts";
import type { DeltaRequest } from "./messages/delta-request.ts";
import { ENDPOINT_TYPE, WILDCARD_TYPES } from "./messages/type-urls.ts";
import { findResource, type Layers, type Resource, type Versioned } from "./resource.ts";

/**
 * How responses tell changes. `delta`: what changed and what is gone. Over state-of-the-world xDS, `complete`: everything,
 * and what is missing is gone; `partial`: what changed, and nothing can be said to be gone.
 */
export type Form = "delta" | "complete" | "partial";

export interface Subscription<R extends Resource> {
  readonly form: Form;
  /** Everything there is of the type is wanted. */
  readonly wildcard: boolean;
  /** Wanted by name. */
  readonly names: ReadonlySet<string>;
  /** To be sent whatever the proxy has: asked for, or changed. */
  readonly due: ReadonlySet<string>;
  /** Wanted by name and answered with "does not exist"; sent as soon as they do. */
  readonly missing: ReadonlySet<string>;
  /** The proxy still has these, and they no longer exist: their removal is owed. */
  readonly leftover: ReadonlySet<string>;
  /** Those as they were, where responses have to repeat them until then. */
  readonly leaving: ReadonlyMap<string, R>;
  /** Rejected by the proxy, and not to be sent again in that version. */
  readonly held: ReadonlyMap<string, Held<R>>;
  /** Groups of names still to be tried apart, after a rejection that did not say what it was about. */
  readonly suspects: readonly ReadonlySet<string>[];
  /** A first request is answered, if only with an empty response: Envoy's start waits for it. */
  readonly unanswered: boolean;
  /** The proxy said that it has something of the type from an earlier stream. */
  readonly keeps: boolean;
  /** The resources that count at present. */
  readonly target: Layers<R>;
  readonly good: Good<R>;
  /** What the proxy kept from an earlier stream; undefined once it was compared with the first target. */
  readonly initial: ReadonlyMap<string, Versioned> | undefined;
  readonly pending: Response<R> | undefined;
  /** Sent so long ago that the next one went before the answer, which may still come. */
  readonly overdue: readonly Response<R>[];
  /** Nonces for people: of the last response, the last one acknowledged, the last one rejected. */
  readonly sent: string;
  readonly acknowledged: string;
  readonly rejected: string;
}

/** What the proxy has and took, to fall back on: the state when nothing was left to send. */
export interface Good<R extends Resource> extends Pick<Subscription<R>, "target" | "wildcard" | "names" | "held"> {
  /** Acknowledged since, while there was more to come. */
  readonly since: readonly Content<R>[];
}

/** A resource that the proxy rejected in one version. */
export interface Held<R extends Resource> {
  readonly rejected: R;
  /** The version it has instead; undefined when it never had a good one. */
  readonly good: R | undefined;
}

/** What a response tells. */
export interface Content<R extends Resource> {
  readonly resources: readonly R[];
  readonly removed: readonly string[];
}

export interface Response<R extends Resource> extends Content<R> {
  readonly nonce: string;
}

/** What a request said about our last response, besides what it asks for. */
export type Verdict<R extends Resource> =
  | { readonly kind: "none" | "acknowledged" | "stale" }
  | { readonly kind: "rejected"; readonly message: string; readonly held: readonly Held<R>[] };

export interface Step<R extends Resource> {
  readonly subscription: Subscription<R>;
  readonly verdict: Verdict<R>;
}

/** A response that has no nonce yet, and the state after it was sent. */
export interface Draft<R extends Resource> {
  /** New, changed or asked for: a rejection is about these. */
  readonly resources: readonly R[];
  /** What the proxy has already, where a response has to hold everything. */
  readonly repeated: readonly R[];
  readonly removed: readonly string[];
  readonly after: Subscription<R>;
}

const NO_NAMES: ReadonlySet<string> = new Set();
/** A proxy that answers none of so many will not answer the oldest. */
const MAX_OVERDUE = 16;

/** The first request of a type on a stream. */
export function subscribe<R extends Resource>(request: DeltaRequest, form: Form = "delta"): Subscription<R> {
  const asked = new Set(request.subscribe);
  const wildcard = WILDCARD_TYPES.has(request.typeUrl) && (asked.size === 0 || asked.has("*"));
  asked.delete("*");
  const names = asked.size === 0 ? NO_NAMES : asked;
  const initial = new Map([...request.initialVersions].map(([name, version]) => [name, { name, version }]));
  // A version says what endpoints Envoy once had, not that the cluster which waits for them has them: it may have been
  // replaced just before the stream broke. So endpoints are sent in any case.
  const kept = request.typeUrl === ENDPOINT_TYPE ? new Map<string, Versioned>() : initial;
  return {
    form,
    wildcard,
    names,
    due: kept.size === 0 ? names : new Set([...names].filter((name) => !kept.has(name))),
    missing: NO_NAMES,
    leftover: NO_NAMES,
    leaving: NONE,
    held: NONE,
    suspects: NOTHING,
    unanswered: wildcard || names.size > 0,
    keeps: initial.size > 0 || request.keepsUnknown,
    target: NOTHING,
    good: { target: NOTHING, wildcard: false, names: NO_NAMES, held: NONE, since: NOTHING },
    initial: kept.size > 0 ? kept : undefined,
    pending: undefined,
    overdue: NOTHING,
    sent: "",
    acknowledged: "",
    rejected: "",
  };
}

/**
 * A later request. It may answer our last response, change the subscription, or both; the two are independent, and a
 * subscription counts even where the answer is stale or a rejection.
 */
export function onRequest<R extends Resource>(subscription: Subscription<R>, request: DeltaRequest): Step<R> {
  const judged = onAnswer(subscription, request);
  return { subscription: changeNames(judged.subscription, request), verdict: judged.verdict };
}

function changeNames<R extends Resource>(state: Subscription<R>, request: DeltaRequest): Subscription<R> {
  if (request.subscribe.length === 0 && request.unsubscribe.length === 0) return state;
  const asked = new Set(request.subscribe);
  asked.delete("*");
  const wanted = editedSet(state.names, { add: asked });
  const given = request.unsubscribe.filter((name) => wanted.has(name));
  // What is still wanted by the wildcard is due: the proxy has just forgotten it.
  const forgotten = state.wildcard ? { add: given } : { remove: given };
  const changed = {
    ...state,
    names: editedSet(wanted, { remove: given }),
    due: editedSet(editedSet(state.due, { add: asked }), forgotten),
    missing: editedSet(state.missing, { remove: [...asked, ...given] }),
    leftover: state.wildcard ? state.leftover : editedSet(state.leftover, { remove: given }),
  };
  return request.typeUrl !== "" && WILDCARD_TYPES.has(request.typeUrl) ? changeWildcard(changed, request) : changed;
}

function changeWildcard<R extends Resource>(state: Subscription<R>, request: DeltaRequest): Subscription<R> {
  if (request.unsubscribe.includes("*")) {
    return { ...state, wildcard: false, due: state.due.intersection(state.names), leftover: NO_NAMES };
  }
  if (!request.subscribe.includes("*")) return state;
  const everything = new Set(state.target.flatMap((layer) => [...layer.keys()]));
  return { ...state, wildcard: true, unanswered: true, due: state.due.union(everything) };
}

/** From now on `target` is what the proxy should have. */
export function retarget<R extends Resource>(state: Subscription<R>, target: Layers<R>): Subscription<R> {
  if (hasSameItems(state.target, target)) return state;
  const from: Layers<Versioned> = state.initial === undefined ? state.target : [state.initial];
  const changes = changesBetween(from, target);
  const wanted = (name: string) => state.wildcard || state.names.has(name);
  const absent = state.missing.size + state.leftover.size === 0 ? NO_NAMES : state.missing.union(state.leftover);
  const returned = [...absent].filter((name) => findResource(target, name) !== undefined);
  const changed = state.wildcard ? changes.changed : those(changes.changed, wanted);
  // What was asked for is answered now, if only with its removal: the proxy may wait for that with everything else.
  const isAsked = (name: string) => state.names.has(name) && state.due.has(name);
  const removed = those(changes.removed, (name) => wanted(name) && !isAsked(name));
  const due =
    state.due.size === 0 && returned.length === 0 ? changed : state.due.union(changed).union(new Set(returned));
  // As with most changes, of endpoints above all.
  if (removed.size === 0 && returned.length === 0) return { ...state, target, initial: undefined, due };
  return {
    ...state,
    target,
    initial: undefined,
    due: due.difference(removed),
    leftover: state.leftover.difference(new Set(returned)).union(removed),
    leaving: state.form === "complete" ? leavingWith(state, { removed, returned }) : state.leaving,
    missing: state.missing.difference(new Set(returned)),
    suspects: state.suspects.map((group) => group.difference(removed)),
  };
}

/** The names that meet the condition; the very set where all of them do. */
function those(names: ReadonlySet<string>, condition: (name: string) => boolean): ReadonlySet<string> {
  for (const name of names) if (!condition(name)) return new Set([...names].filter(condition));
  return names;
}

function leavingWith<R extends Resource>(
  state: Subscription<R>,
  { removed, returned }: { readonly removed: ReadonlySet<string>; readonly returned: readonly string[] },
): ReadonlyMap<string, R> {
  const changed = new Map(state.leaving);
  for (const name of removed) {
    const last = owned(state, name);
    if (last !== undefined) changed.set(name, last);
  }
  for (const name of returned) changed.delete(name);
  return changed;
}

/** What the proxy has under a name, once it has answered. */
function owned<R extends Resource>(state: Subscription<R>, name: string): R | undefined {
  return isUntold(state, name) ? lastGood(state, name) : chosen(state, name);
}

/**
 * The next response, or undefined when there is nothing to say or the last one is not answered yet. Resources that are
 * gone are told only with `removals`, and not those in `keep`: who sends them late can make sure nobody uses them any more.
 */
export function emit<R extends Resource>(
  state: Subscription<R>,
  options: { readonly removals: boolean; readonly keep?: ReadonlySet<string> },
): Draft<R> | undefined {
  if (state.pending !== undefined || isSilent(state)) return undefined;
  const [apart] = state.suspects;
  const suspects = apart === undefined ? state.suspects : state.suspects.slice(1);
  const names = apart ?? state.due;
  const tellsGone = options.removals && apart === undefined && state.form !== "partial";
  const gone = tellsGone && state.leftover.size > 0 ? state.leftover.difference(options.keep ?? NO_NAMES) : NO_NAMES;
  const { resources, unknown } = lookUp(state, names);
  const removed = [...gone, ...unknown];
  const after = {
    ...state,
    unanswered: false,
    due: apart === undefined ? NO_NAMES : state.due.difference(apart),
    suspects,
    leftover: gone.size === 0 ? state.leftover : state.leftover.difference(gone),
    leaving: gone.size === 0 ? state.leaving : new Map([...state.leaving].filter(([name]) => !gone.has(name))),
    missing: editedSet(state.missing, { add: removed.filter((name) => state.names.has(name)) }),
  };
  if (resources.length + removed.length > 0 || state.unanswered) {
    return { resources, repeated: repeatedIn(after, names), removed, after };
  }
  return suspects.length === state.suspects.length ? undefined : emit(after, options);
}

/** As it is most of the time. */
function isSilent<R extends Resource>({ due, suspects, leftover, unanswered }: Subscription<R>): boolean {
  return due.size === 0 && suspects.length === 0 && leftover.size === 0 && !unanswered;
}

/** What a complete response holds besides the names that it is about. */
function repeatedIn<R extends Resource>(state: Subscription<R>, told: ReadonlySet<string>): readonly R[] {
  if (state.form !== "complete") return [];
  const all = state.wildcard ? state.target.flatMap((layer) => [...layer.keys()]) : [];
  const names = new Set([...all, ...state.names]).difference(told);
  const current = [...names].map((name) => owned(state, name));
  const leaving = [...state.leftover].map((name) => state.leaving.get(name));
  return [...current, ...leaving].filter((resource) => resource !== undefined);
}

/** The state once the draft was sent under that nonce. */
export function afterSending<R extends Resource>(draft: Draft<R>, nonce: string): Subscription<R> {
  const pending = { nonce, resources: draft.resources, removed: draft.removed };
  return { ...draft.after, pending, sent: nonce };
}

/** Endpoints that clusters of that response wait for are due, whether they changed or not. */
export function owe<R extends Resource>(endpoints: Subscription<R>, { resources }: Draft<R>): Subscription<R> {
  const { names, due } = endpoints;
  if (due === names) return endpoints; // as on a new stream
  const owed: string[] = [];
  for (const { awaits } of resources)
    if (awaits !== undefined && names.has(awaits) && !due.has(awaits)) owed.push(awaits);
  return owed.length === 0 ? endpoints : { ...endpoints, due: new Set([...due, ...owed]) };
}

/** The answer to the last response is not waited for any longer. */
export function givenUp<R extends Resource>(state: Subscription<R>): Subscription<R> {
  if (state.pending === undefined) return state;
  return { ...state, pending: undefined, overdue: [...state.overdue, state.pending].slice(-MAX_OVERDUE) };
}

function lookUp<R extends Resource>(state: Subscription<R>, names: ReadonlySet<string>) {
  const resources: R[] = [];
  const unknown: string[] = [];
  for (const name of names) {
    const resource = chosen(state, name);
    if (resource !== undefined) resources.push(resource);
    else unknown.push(name);
  }
  return { resources, unknown };
}
