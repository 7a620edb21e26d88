/** Answers to responses: acknowledged, rejected, or about a response that no longer counts. */
import { culprits } from "./culprits.ts";
import type { DeltaRequest } from "./delta-request.ts";
import { findResource, type Resource } from "./resource.ts";
import type { Held, Response, Step, Subscription } from "./subscription.ts";

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
  const clean = subscription.due.size === 0 && subscription.suspects.length === 0;
  return {
    subscription: {
      ...subscription,
      pending: undefined,
      acknowledged: response.nonce,
      held: stillHeld(subscription),
      good: clean ? withoutPast(subscription) : subscription.good,
    },
    verdict: { kind: "acknowledged" },
  };
}

function withoutPast<R extends Resource>({ target, wildcard, names }: Subscription<R>): Subscription<R>["good"] {
  return { target, wildcard, names };
}

/** The version that the proxy had when nothing was left to send. */
export function lastGood<R extends Resource>({ good }: Subscription<R>, name: string): R | undefined {
  return good.wildcard || good.names.has(name) ? findResource(good.target, name) : undefined;
}

/** A hold ends when another version was acknowledged, or the resource is gone. */
function stillHeld<R extends Resource>({ held, target, due }: Subscription<R>): Subscription<R>["held"] {
  if (held.size === 0) return held;
  const current = (name: string) => findResource(target, name)?.version;
  return new Map([...held].filter(([name, { rejected }]) => due.has(name) || current(name) === rejected.version));
}

/**
 * Envoy applies what it can of a rejected response, or nothing, depending on the type. The culprits are held at their last
 * good version, or replaced by what they fall back on, and the others sent again without them. Where Envoy does not say who it was, halves are tried apart; so no
 * response is ever sent twice.
 */
function onRejection<R extends Resource>(state: Subscription<R>, pending: Response<R>, message: string): Step<R> {
  const named = culprits(message, pending.resources);
  const guilty = named.length === 0 && pending.resources.length === 1 ? pending.resources : named;
  const innocent = pending.resources.filter((resource) => !guilty.includes(resource)).map((resource) => resource.name);
  const held = new Map(state.held);
  const entries = guilty.map((rejected) => {
    const entry = heldAfter(state, rejected);
    held.set(rejected.name, entry);
    return entry;
  });
  const replaced = entries.filter(({ rejected, good }) => good !== undefined && good === rejected.fallback?.());
  const apart = guilty.length === 0 ? halves(innocent) : [];
  return {
    subscription: {
      ...state,
      pending: undefined,
      rejected: pending.nonce,
      held,
      due:
        guilty.length === 0
          ? state.due
          : state.due.union(new Set([...innocent, ...replaced.map(({ rejected }) => rejected.name)])),
      suspects: [...apart, ...state.suspects],
      leftover: pending.resources.length === 0 ? state.leftover : state.leftover.union(new Set(pending.removed)),
    },
    verdict: { kind: "rejected", message, held: entries },
  };
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
