/**
 * Follows a collection of objects by list and watch.
 *
 *     list --all objects--> watch from there --changes--> ...
 *       ^                     |  ended or broken: watch again from the last version seen
 *       +-- 410: too old -----+
 *       +-- away, then older -+
 *
 * A server that is away costs nothing but time: what was known stays. One that comes back with a store from a backup has older
 * versions than those seen: it would take a watch from there and keep silent until it gets that far, so it is listed again.
 */
import type { Backoff } from "../async/backoff.ts";
import { sleep } from "../async/sleep.ts";
import { isRecord } from "../json/is-record.ts";
import { errorText } from "../mesh-error.ts";
import { ApiError, isUnreachable, type KubernetesApi, type RawObject } from "./api-client.ts";
import { apiVersionOf, pathOf, type ResourceType } from "./resource-types.ts";

/** Who wants to know the objects. */
export interface Follower {
  /** All there are: what is not among them is gone. */
  replace(objects: readonly RawObject[]): Promise<void>;
  put(object: RawObject): void;
  remove(object: RawObject): void;
  /** The collection cannot be read at present, or for another reason than before; undefined when it can again. */
  trouble(problem: unknown): void;
  /** A try to read it has failed, told or not. */
  failed?(): void;
}

export interface FollowOptions {
  readonly api: KubernetesApi;
  readonly type: ResourceType;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly follower: Follower;
  readonly backoff: Backoff;
  readonly signal: AbortSignal;
  /** A watch on which nothing came for this long is taken for dead: the server sends a bookmark every minute. */
  readonly silenceMs?: number;
}

const PAGE = 500;
const SILENCE_MS = 150_000;
/** Watches end after 5 to 10 minutes, spread so that not all of them come back at once. */
const WATCH_SECONDS = 300;
/** A server that ends watches at once is not asked again at once. */
const SHORT_WATCH_MS = 1_000;
/** Over this time all that wait for a server come back to one that answers again. */
const RETURN_MS = 1_000;

/** Resolves when the signal aborts. */
export async function follow(options: FollowOptions): Promise<void> {
  const { backoff, signal } = options;
  const troubles = new Troubles(options.follower);
  let version: string | undefined;
  let isAway = false;
  /** It was away since its version was last known. */
  let isDoubtful = false;
  while (!signal.aborted) {
    let isWatching = false;
    // Pauses that grew while the server was away say nothing about one that is back.
    const isBack = () => {
      if (isAway) backoff.reset();
      isAway = false;
    };
    const answered = () => {
      isWatching = true;
      isBack();
      troubles.over();
    };
    try {
      if (version !== undefined && isDoubtful && (await isOlder(options, version))) version = undefined;
      isDoubtful = false;
      if (version === undefined) {
        version = await list(options);
        troubles.over();
      }
      const start = performance.now();
      for await (const seen of watch(options, version, answered)) {
        version = seen;
        backoff.reset();
      }
      if (performance.now() - start < SHORT_WATCH_MS) await sleep(backoff.next(), signal);
    } catch (problem) {
      if (signal.aborted) return;
      if (isExpired(problem)) version = undefined;
      // Connections of watches break now and then: there is something to tell when the next cannot be had.
      else if (!isWatching || !isUnreachable(problem)) troubles.met(problem);
      if (isUnreachable(problem)) [isAway, isDoubtful] = [true, true];
      else isBack();
      await pause(problem, options);
    }
  }
}

/** Waits before the next try, no longer than until a server that was away is back. */
async function pause(problem: unknown, { api, backoff, signal }: FollowOptions): Promise<void> {
  const ms = Math.max(backoff.next(), retryAfter(problem));
  const { returned } = api;
  if (returned === undefined || !isUnreachable(problem)) return sleep(ms, signal);
  await sleep(ms, AbortSignal.any([signal, returned]));
  if (returned.aborted) await sleep(RETURN_MS * Math.random(), signal);
}

/** Tells a follower what is new. */
class Troubles {
  readonly #follower: Follower;
  #told: string | undefined;

  constructor(follower: Follower) {
    this.#follower = follower;
  }

  met(problem: unknown): void {
    this.#follower.failed?.();
    const text = errorText(problem);
    if (text === this.#told) return;
    this.#told = text;
    this.#follower.trouble(problem);
  }

  over(): void {
    this.#told = undefined;
    this.#follower.trouble(undefined);
  }
}

/** Hands over all objects; gives the version from which to watch. */
async function list({ api, type, namespace, follower, signal, ...selectors }: FollowOptions): Promise<string> {
  const objects: RawObject[] = [];
  const { labelSelector, fieldSelector } = selectors;
  let next: string | undefined;
  do {
    const page: ListPage = await api.call({
      path: pathOf(type, { namespace }),
      query: { limit: PAGE, continue: next, labelSelector, fieldSelector },
      signal,
    });
    // Items of a list do not say what they are.
    for (const item of page.items ?? [])
      objects.push(lean({ apiVersion: apiVersionOf(type), kind: type.kind, ...item }));
    next = page.metadata.continue || undefined;
    if (next === undefined) {
      await follower.replace(objects);
      return page.metadata.resourceVersion ?? "";
    }
  } while (!signal.aborted);
  return "";
}

/** Whether all that the server has is older than a version that it gave before. Rights may be for what is selected alone. */
async function isOlder(options: FollowOptions, version: string): Promise<boolean> {
  const { api, type, namespace, labelSelector, fieldSelector, signal } = options;
  const query = { limit: 1, labelSelector, fieldSelector };
  const page: ListPage = await api.call({ path: pathOf(type, { namespace }), query, signal });
  return Number(page.metadata.resourceVersion) < Number(version);
}

interface ListPage {
  readonly metadata: { readonly continue?: string; readonly resourceVersion?: string };
  readonly items?: readonly RawObject[];
}

/** Hands over changes; gives the version of each, and returns when the server ends the watch. */
async function* watch(options: FollowOptions, resourceVersion: string, answered: () => void): AsyncGenerator<string> {
  const { api, type, namespace, labelSelector, fieldSelector, signal, silenceMs = SILENCE_MS } = options;
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(new Error(`nothing was heard in ${silenceMs / 1000} s`)), silenceMs);
  const timeoutSeconds = Math.round(WATCH_SECONDS * (1 + Math.random()));
  const query = {
    watch: true,
    allowWatchBookmarks: true,
    resourceVersion,
    timeoutSeconds,
    labelSelector,
    fieldSelector,
  };
  try {
    const path = pathOf(type, { namespace });
    const call = { path, query, signal: AbortSignal.any([signal, silence.signal]) };
    for await (const line of api.lines(call, answered)) {
      timer.refresh();
      if (line !== "") yield take(JSON.parse(line), options);
    }
  } catch (problem) {
    // A watch that fell silent is begun anew from where it was, without a word.
    if (!silence.signal.aborted) throw problem;
  } finally {
    clearTimeout(timer);
  }
}

/** Hands over one change. */
function take(event: unknown, { follower, type }: FollowOptions): string {
  if (!isRecord(event) || !isObject(event.object)) throw new Error(`a watch of ${type.plural} sent what is no event`);
  const { object } = event;
  if (event.type === "ERROR") throw refused(object, type);
  if (event.type === "DELETED") follower.remove(object);
  else if (event.type !== "BOOKMARK") follower.put(lean(object));
  return object.metadata.resourceVersion ?? "";
}

function isObject(value: unknown): value is RawObject {
  return isRecord(value) && isRecord(value.metadata);
}

function refused({ message, reason, code }: RawObject, { plural }: ResourceType): ApiError {
  return new ApiError(`a watch of ${plural} ended: ${String(message)}`, {
    status: Number(code),
    reason: String(reason),
  });
}

function isExpired(problem: unknown): boolean {
  return problem instanceof ApiError && problem.status === 410;
}

function retryAfter(problem: unknown): number {
  return (problem instanceof ApiError && problem.retryAfterMs) || 0;
}

/** Who wrote which field is nothing to us, and often half of an object. */
function lean(object: RawObject): RawObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
