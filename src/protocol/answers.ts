/** Answers to responses: acknowledged, rejected, or about a response that no longer counts. */
import { culprits } from "./culprits.ts";
import type { DeltaRequest } from "./messages/delta-request.ts";
import { findResource, type Resource } from "./resource.ts";
import type { Content, Good, Held, Response, Step, Subscription } from "./subscription.ts";

/** What is empty is the same in all states, so that they can be compared. */
export const NONE: ReadonlyMap<string, never> = new Map<string, never>();
export const NOTHING: readonly never[] = [];

/** So many are joined into one: there may always be more to come. */
const MOST_TAKEN = 16;

/** What a request says about a response of ours, and what follows from it. */
export function onAnswer<R extends Resource>(subscription: Subscription<R>, request: DeltaRequest): Step<R> {
  if (request.nonce === "") return { subscription, verdict: { kind: "none" } };
  const { pending, overdue } = subscription;
  if (pending?.nonce === request.nonce) return onJudged(subscription, pending, request);
  const late = overdue.find(({ nonce }) => nonce === request.nonce);
  if (late === undefined) return { subscription, verdict: { kind: "stale" } };
  const { subscription: judged, verdict } = onJudged(subscription, late, request);
  return { subscription: { ...judged, pending, overdue: overdue.filter((response) => response !== late) }, verdict };
}

function onJudged<R extends Resource>(
  subscription: Subscription<R>,
  response: Response<R>,
  request: DeltaRequest,
): Step<R> {
  if (request.error !== undefined) return onRejection(subscription, response, request.error.message);
  const taken = {
    ...subscription,
    pending: undefined,
    acknowledged: response.nonce,
    held: stillHeld(subscription, response),
  };
  const good = isSettled(subscription, response) ? asItIs(taken) : withTaken(taken.good, response);
  return { subscription: { ...taken, good }, verdict: { kind: "acknowledged" } };
}

/** Whether nothing is left to send, nor any other answer to come. */
function isSettled<R extends Resource>(state: Subscription<R>, answered: Response<R>): boolean {
  return state.due.size === 0 && state.suspects.length === 0 && otherResponses(state, answered).length === 0;
}

/** Those that are not answered yet. */
function otherResponses<R extends Resource>(
  { pending, overdue }: Subscription<R>,
  answered: Response<R>,
): readonly Response<R>[] {
  const all = pending === undefined ? overdue : [pending, ...overdue];
  return all.filter((response) => response !== answered);
}

/** What the proxy has once all is told but what is gone. */
function asItIs<R extends Resource>(state: Subscription<R>): Good<R> {
  const { target, wildcard, names, held, leftover } = state;
  const untold = [...leftover].flatMap((name) => lastGood(state, name) ?? []);
  const since = untold.length === 0 ? NOTHING : [{ resources: untold, removed: NOTHING }];
  return { target, wildcard, names, held, since };
}

function withTaken<R extends Resource>(good: Good<R>, response: Response<R>): Good<R> {
  const since = [...good.since, response];
  return { ...good, since: since.length > MOST_TAKEN ? [joined(since)] : since };
}

/** As if all were told at once. */
function joined<R extends Resource>(contents: readonly Content<R>[]): Content<R> {
  const last = new Map<string, R | undefined>();
  for (const { resources, removed } of contents) {
    for (const resource of resources) last.set(resource.name, resource);
    for (const name of removed) last.set(name, undefined);
  }
  const removed = [...last].flatMap(([name, resource]) => (resource === undefined ? [name] : []));
  return { resources: [...last.values()].filter((resource) => resource !== undefined), removed };
}

/** The version that the proxy took last. */
export function lastGood<R extends Resource>({ good }: Subscription<R>, name: string): R | undefined {
  for (const content of good.since.toReversed()) {
    const told = toldByName(content);
    if (told.has(name)) return told.get(name);
  }
  return good.wildcard || good.names.has(name) ? chosen(good, name) : undefined;
}

const told = new WeakMap<Content<Resource>, ReadonlyMap<string, Resource | undefined>>();

/** What a response told, by name; undefined for what it removed. A rejection can ask for every name of it. */
function toldByName<R extends Resource>(content: Content<R>): ReadonlyMap<string, R | undefined> {
  const known = told.get(content) as ReadonlyMap<string, R | undefined> | undefined;
  if (known !== undefined) return known;
  const { resources, removed } = content;
  // Of a name that is in both the resource counts, and of two resources the first.
  const entries = [...resources].reverse().map((resource) => [resource.name, resource] as const);
  const made = new Map<string, R | undefined>([...removed.map((name) => [name, undefined] as const), ...entries]);
  told.set(content, made);
  return made;
}

/** The newest version that the proxy did not reject. */
export function chosen<R extends Resource>(
  { target, held }: Pick<Subscription<R>, "target" | "held">,
  name: string,
): R | undefined {
  const current = findResource(target, name);
  const hold = held.get(name);
  return current !== undefined && current.version === hold?.rejected.version ? hold.good : current;
}

/** Whether a name is still to be sent. */
export function isUntold<R extends Resource>({ due, suspects }: Subscription<R>, name: string): boolean {
  return due.has(name) || suspects.some((group) => group.has(name));
}

/** A hold ends when another version was acknowledged, or the resource is gone. */
function stillHeld<R extends Resource>(state: Subscription<R>, answered: Response<R>): Subscription<R>["held"] {
  const { held, target } = state;
  if (held.size === 0) return held;
  const open = new Set(otherResponses(state, answered).flatMap(({ resources }) => resources.map(({ name }) => name)));
  const isOpen = (name: string) => isUntold(state, name) || open.has(name);
  const current = (name: string) => findResource(target, name)?.version;
  const still = [...held].filter(([name, { rejected }]) => isOpen(name) || current(name) === rejected.version);
  return still.length === 0 ? NONE : new Map(still);
}

/**
 * Envoy applies what it can of a rejected response, or nothing, depending on the type. The culprits are held at their last
 * good version, or replaced by what they fall back on, and the others sent again without them. Where Envoy does not say who
 * it was, halves are tried apart; so no response is ever sent twice.
 */
function onRejection<R extends Resource>(state: Subscription<R>, pending: Response<R>, message: string): Step<R> {
  const named = culprits(message, pending.resources);
  const guilty = named.length === 0 && pending.resources.length === 1 ? pending.resources : named;
  const blamed = new Set(guilty);
  const innocent = pending.resources.filter((resource) => !blamed.has(resource)).map((resource) => resource.name);
  const held = new Map(state.held);
  const entries = guilty.map((rejected) => {
    const entry = heldAfter(state, rejected);
    held.set(rejected.name, entry);
    return entry;
  });
  const replaced = entries.filter(({ rejected, good }) => good !== undefined && good === rejected.fallback?.());
  const apart = guilty.length === 0 ? halves(innocent) : [];
  const again = new Set([...innocent, ...replaced.map(({ rejected }) => rejected.name)]);
  const rejected = {
    ...state,
    pending: undefined,
    rejected: pending.nonce,
    held,
    due: guilty.length === 0 ? state.due : state.due.union(again),
    suspects: [...apart, ...state.suspects],
    leftover: pending.resources.length === 0 ? state.leftover : state.leftover.union(new Set(pending.removed)),
  };
  const good = isSettled({ ...rejected, pending: state.pending }, pending) ? asItIs(rejected) : state.good;
  return { subscription: { ...rejected, good }, verdict: { kind: "rejected", message, held: entries } };
}

/** What the proxy is to have instead of what it rejected. When it rejects that too, it keeps whatever it had before. */
function heldAfter<R extends Resource>(state: Subscription<R>, rejected: R): Held<R> {
  const before = state.held.get(rejected.name);
  if (before !== undefined && before.good?.version === rejected.version) {
    const good = lastGood(state, rejected.name);
    const isTried = good?.version === rejected.version || good?.version === before.rejected.version;
    return { rejected: before.rejected, good: isTried ? undefined : good };
  }
  const good = before === undefined ? lastGood(state, rejected.name) : before.good;
  return { rejected, good: rejected.fallback?.() ?? good };
}

function halves(names: readonly string[]): readonly ReadonlySet<string>[] {
  const middle = Math.ceil(names.length / 2);
  return [new Set(names.slice(0, middle)), new Set(names.slice(middle))].filter((half) => half.size > 0);
}
