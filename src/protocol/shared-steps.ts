/**
 * Most proxies of a view ask for the same and are told the same: they go through the same states. A state is a value, so all of
 * them have one and the same, and each step from it is made once and not once for each proxy; what one asks for by name, which
 * can be thousands of names, is held once too.
 *
 * ```
 *   proxy 1: A --retarget--> B --emit, afterSending--> C --answer--> D
 *   proxy 2: A --(the same)-> B --(the same)---------> C --...
 * ```
 *
 * Steps are remembered until `clear`: nobody is expected to take the same ones any more. Who took another way, and is in a
 * state that is alike by then, goes on with the others.
 */
import { hasSameItems } from "#lib/collections/same-items.ts";
import type { ByType } from "./by-type.ts";
import type { DeltaRequest } from "./messages/delta-request.ts";
import { NameSets } from "./name-sets.ts";
import type { Layers, Resource } from "./resource.ts";
import { type StateRequest, toDelta } from "./state-request.ts";
import {
  afterSending,
  type Draft,
  emit,
  type Form,
  onRequest,
  owe,
  retarget,
  type Step,
  type Subscription,
  subscribe,
} from "./subscription.ts";

/** What a proxy wants and has of each type. */
export type States<R extends Resource> = ByType<Subscription<R>>;

/** The resources that count from now on, by type. */
export type Targets<R extends Resource> = ReadonlyMap<string, Layers<R>>;

interface Way<State> {
  readonly before: State;
  readonly after: State;
}

interface Change<R extends Resource> {
  readonly typeUrl: string;
  readonly state: Subscription<R>;
  readonly after: States<R>;
}

interface Meaning<R extends Resource> {
  readonly request: StateRequest;
  readonly state: Subscription<R> | undefined;
  readonly meant: DeltaRequest;
}

interface Emitted<R extends Resource> {
  readonly removals: boolean;
  readonly draft: Draft<R>;
}

/** Proxies that differ in more ways than this take steps of their own: to compare them would take as long. */
const MAX_WAYS = 4;

export class SharedSteps<R extends Resource> {
  readonly #nameSets = new NameSets();
  readonly #subscribed = new Map<string, Subscription<R>>();
  readonly #retargeted = new Map<Layers<R>, Way<Subscription<R>>[]>();
  readonly #moved = new Map<Targets<R>, Way<States<R>>[]>();
  readonly #changed = new Map<States<R>, Change<R>[]>();
  readonly #idle = new WeakSet<States<R>>();
  readonly #emitted = new Map<Subscription<R>, Emitted<R>>();
  readonly #sent = new Map<Draft<R>, Subscription<R>>();
  readonly #owed = new Map<Draft<R>, Way<Subscription<R>>[]>();
  readonly #acknowledged = new Map<Subscription<R>, Step<R>>();
  #last: Meaning<R> | undefined;

  clear(): void {
    this.#last = undefined;
    const ofOneType = [this.#subscribed, this.#retargeted, this.#emitted, this.#sent, this.#owed, this.#acknowledged];
    for (const steps of [...ofOneType, this.#moved, this.#changed]) steps.clear();
  }

  subscribe(request: DeltaRequest, form: Form): Subscription<R> {
    const made = this.#withSharedNames(subscribe<R>(request, form));
    const key = `${request.typeUrl} ${form}`;
    const last = this.#subscribed.get(key);
    if (last !== undefined && isAlike(last, made)) return last;
    this.#subscribed.set(key, made);
    return made;
  }

  /** What a request of state-of-the-world xDS means in a state; each answer repeats all names. */
  meaning(request: StateRequest, state: Subscription<R> | undefined): DeltaRequest {
    if (this.#last?.request !== request || this.#last.state !== state)
      this.#last = { request, state, meant: toDelta(request, state) };
    return this.#last.meant;
  }

  onRequest(state: Subscription<R>, request: DeltaRequest): Step<R> {
    if (!isAcknowledgement(state, request)) {
      const { subscription, verdict } = onRequest(state, request);
      // To compare sets takes as long as to read them: only who named most of one just now may do that.
      const isNewSet = subscription.names !== state.names && 2 * request.subscribe.length >= subscription.names.size;
      return { subscription: isNewSet ? this.#withSharedNames(subscription) : subscription, verdict };
    }
    const step = this.#acknowledged.get(state) ?? onRequest(state, request);
    this.#acknowledged.set(state, step);
    return step;
  }

  retarget(state: Subscription<R>, target: Layers<R>): Subscription<R> {
    return hasSameItems(state.target, target) ? state : taken(this.#retargeted, target, state, retarget);
  }

  /** The same for several types. One that nobody asked for stays as it is. */
  retargetAll(states: States<R>, targets: Targets<R>): States<R> {
    const ways = this.#moved.get(targets) ?? [];
    const known = ways.find(({ before }) => before === states || before.isSame(states));
    if (known !== undefined) return known.after;
    let after = states;
    for (const [typeUrl, target] of targets) {
      const state = after.get(typeUrl);
      if (state !== undefined) after = after.with(typeUrl, this.retarget(state, target));
    }
    if (ways.length < MAX_WAYS) this.#moved.set(targets, [...ways, { before: states, after }]);
    return after;
  }

  /** With that state of a type. */
  change(states: States<R>, typeUrl: string, state: Subscription<R>): States<R> {
    const changes = this.#changed.get(states) ?? [];
    const known = changes.find((change) => change.state === state && change.typeUrl === typeUrl);
    if (known !== undefined) return known.after;
    const after = states.with(typeUrl, state);
    if (changes.length < MAX_WAYS) this.#changed.set(states, [...changes, { typeUrl, state, after }]);
    return after;
  }

  /** Whether that was found for such states before. It is asked after each answer. */
  isIdle(states: States<R>): boolean {
    return this.#idle.has(states);
  }

  /** States in which nothing is left to be done, whatever the time. */
  noteIdle(states: States<R>): void {
    this.#idle.add(states);
  }

  emit(state: Subscription<R>, { removals }: { readonly removals: boolean }): Draft<R> | undefined {
    const known = this.#emitted.get(state);
    if (known?.removals === removals) return known.draft;
    const draft = emit(state, { removals });
    if (draft !== undefined) this.#emitted.set(state, { removals, draft });
    return draft;
  }

  afterSending(draft: Draft<R>, nonce: string): Subscription<R> {
    const known = this.#sent.get(draft);
    if (known?.sent === nonce) return known;
    const after = afterSending(draft, nonce);
    this.#sent.set(draft, after);
    return after;
  }

  /** Endpoints after clusters were sent that wait for some of them, whether these changed or not. */
  owe(endpoints: Subscription<R>, clusters: Draft<R>): Subscription<R> {
    return taken(this.#owed, clusters, endpoints, owe);
  }

  #withSharedNames(state: Subscription<R>): Subscription<R> {
    const names = this.#nameSets.shared(state.names);
    return names === state.names ? state : { ...state, names, due: state.due === state.names ? names : state.due };
  }
}

/** The step that something leads to, as it was taken from a state that is alike. */
function taken<R extends Resource, Cause>(
  steps: Map<Cause, Way<Subscription<R>>[]>,
  cause: Cause,
  state: Subscription<R>,
  take: (state: Subscription<R>, cause: Cause) => Subscription<R>,
): Subscription<R> {
  const ways = steps.get(cause) ?? [];
  const known = ways.find(({ before }) => before === state || isAlike(before, state));
  if (known !== undefined) return known.after;
  const after = take(state, cause);
  if (ways.length < MAX_WAYS) steps.set(cause, [...ways, { before: state, after }]);
  return after;
}

/** Whether many streams may take the step that a request leads to. Others are not remembered: a stranger can make any number. */
export function isShared<R extends Resource>(state: Subscription<R> | undefined, request: DeltaRequest): boolean {
  return state === undefined || isAcknowledgement(state, request);
}

/** Whether a request says nothing but that the last response was taken. */
function isAcknowledgement<R extends Resource>({ pending }: Subscription<R>, request: DeltaRequest): boolean {
  const { nonce, error, subscribe, unsubscribe } = request;
  return pending?.nonce === nonce && error === undefined && subscribe.length === 0 && unsubscribe.length === 0;
}

/** Whether two states are the same in all that they hold. */
function isAlike<S extends Subscription<Resource>>(a: S, b: S): boolean {
  return hasSameFields(a, b, "good") && hasSameFields(a.good, b.good);
}

function hasSameFields<T extends object>(a: T, b: T, except?: keyof T): boolean {
  for (const key in a) if (key !== except && a[key] !== b[key]) return false;
  return true;
}
