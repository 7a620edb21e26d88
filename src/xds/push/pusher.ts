/**
 * Brings every stream to the newest state, one stream at a time, in slices of a few milliseconds. A stream comes into the
 * queue when the world changed, when its proxy said something and when its last response has left; it leaves the queue
 * with at most one response. So a proxy that reads slowly is passed over, holds nobody up, and gets the newest state once
 * it is ready, however many changes there were in between.
 */

import { Slices } from "#lib/async/slices.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { shortTypeName } from "#protocol/messages/type-urls.ts";
import { nextResponse } from "#protocol/session.ts";
import { SharedSteps, type Targets } from "#protocol/shared-steps.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { Catalogue } from "../parts/catalogue.ts";
import type { PartsOf, ProxyParts } from "../parts/parts.ts";
import { Preparation } from "../parts/preparation.ts";
import type { BuiltResource } from "../resources/built-resource.ts";
import { Responses } from "../resources/responses.ts";
import type { ByteBudget } from "../stream/byte-budget.ts";
import type { XdsStream } from "../stream/xds-stream.ts";
import type { Clock } from "../timing/clock.ts";
import { type Aim, hasNewRound, TargetFinder } from "./target-finder.ts";

export interface PusherOptions {
  readonly partsOf: PartsOf;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly controlPlane: string;
  /** What may wait to be read, over all streams of a kind; each stream has at most one response. The first kind goes first. */
  readonly budgets: readonly ByteBudget[];
  /** How many bytes of responses are kept for other proxies. */
  readonly maxSharedBytes: number;
}

/** A snapshot on its way to the proxies. */
interface World {
  readonly snapshot: Snapshot;
  readonly version: number;
  readonly changedAt: number;
}

/** What was sent leaves when a slice is over: longer ones keep the first proxies waiting, and gain the last ones nothing. */
const SLICE_MS = 4;
/** Responses are kept so long after the last push. */
const SHARED_FOR_MS = 1_000;
/** Requests without a pause must not make it pile up. */
const SHARED_AT_MOST_MS = 10_000;
/** The last round is not over. */
const NO_ROUND = "none";

interface Serving {
  readonly world: World;
  readonly start: number;
  readonly unready: Promise<void>;
}

export class Pusher {
  readonly #options: PusherOptions;
  readonly #slices: Slices;
  readonly #catalogue: Catalogue;
  readonly #finder: TargetFinder;
  readonly #preparation: Preparation;
  readonly #responses: Responses;
  /** Of the streams, for those that are told the same. */
  readonly steps = new SharedSteps<BuiltResource>();
  readonly #streams = new Set<XdsStream>();
  /** Streams to look at, in the order they came, by what limits them. */
  readonly #queues: ReadonlyMap<ByteBudget, Set<XdsStream>>;
  /** Budgets in which there has to be room before their streams go on. */
  readonly #awaited = new Set<ByteBudget>();
  #world: World | undefined;
  /** When what proxies share was last forgotten. */
  #sharedSince = Number.NEGATIVE_INFINITY;
  #wakeUp: () => void = () => undefined;
  #cancelForgetting: () => void = () => undefined;

  constructor(options: PusherOptions) {
    const { clock, log, maxSharedBytes: maxBytes, controlPlane, partsOf } = options;
    this.#options = options;
    this.#queues = new Map(options.budgets.map((budget) => [budget, new Set()]));
    this.#slices = new Slices(() => clock.now(), SLICE_MS);
    this.#catalogue = new Catalogue(this.#slices, log);
    this.#finder = new TargetFinder(this.#catalogue);
    this.#preparation = new Preparation({ catalogue: this.#catalogue, partsOf, clock });
    this.#responses = new Responses({ maxBytes, controlPlane });
  }

  get streams(): ReadonlySet<XdsStream> {
    return this.#streams;
  }

  /** What is held for the connected proxies. */
  get held(): { readonly parts: number; readonly resources: number } {
    return this.#catalogue.size;
  }

  /** Whether every stream was sent what there is to send, and nothing waits for an answer. */
  get hasSentAll(): boolean {
    const hasAll = (stream: XdsStream) =>
      !this.#queueOf(stream).has(stream) &&
      !stream.isFlushing &&
      stream.targetVersion === this.#world?.version &&
      stream.isIdle;
    return [...this.#streams].every(hasAll);
  }

  /** From now on this is the state of the mesh. */
  release(snapshot: Snapshot, changedAt: number): void {
    this.#world = { snapshot, version: (this.#world?.version ?? 0) + 1, changedAt };
    this.#forgetShared();
    for (const stream of this.#streams) this.wake(stream);
  }

  /** What was shared by the proxies of one push. */
  #forgetShared(): void {
    this.#sharedSince = this.#options.clock.now();
    this.#responses.clear();
    this.steps.clear();
  }

  /** What parts are made of beside the snapshot changed. */
  refresh(): void {
    if (this.#world !== undefined) this.release(this.#world.snapshot, this.#options.clock.now());
  }

  add(stream: XdsStream): void {
    this.#streams.add(stream);
  }

  /** Builds what such a proxy would get, if none has come yet, and keeps it for a while. Nobody is served meanwhile. */
  async prepare(proxy: MeshProxy): Promise<void> {
    if (this.#world !== undefined && this.#streams.size === 0) await this.#preparation.run(proxy, this.#world);
  }

  /** There may be something to do for the stream. */
  wake(stream: XdsStream): void {
    if (this.#isAtRest(stream)) return;
    const queue = this.#queueOf(stream);
    if (!queue.has(stream)) {
      stream.queuedAt = this.#options.clock.now();
      queue.add(stream);
    }
    this.#wakeUp();
  }

  /** Its parts are given back in its turn: it may be just being served. Returns whether it was one of the streams. */
  remove(stream: XdsStream): boolean {
    const wasThere = this.#streams.delete(stream);
    this.wake(stream);
    return wasThere;
  }

  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#wakeUp(), { once: true });
    while (!signal.aborted) {
      const preparing = this.#preparation.running;
      if (preparing !== undefined) await preparing;
      if (this.#options.clock.now() - this.#sharedSince > SHARED_AT_MOST_MS) this.#forgetShared();
      const stream = this.#take();
      // Most are served at once: a promise for each would take as long as the rest of it.
      const serving = stream === undefined ? this.#idle(signal) : this.#serve(stream);
      if (serving !== undefined) await serving;
      if (this.#slices.isOver) await this.#slices.next();
    }
    this.#cancelForgetting();
    this.#preparation.drop();
  }

  /** Whether there is nothing to do for it now: after most responses and answers nothing is. */
  #isAtRest(stream: XdsStream): boolean {
    if (stream.isClosed) return false;
    if (stream.isFlushing || this.#world === undefined) return true; // it is woken again
    if (stream.targetVersion !== this.#world.version || stream.asksForMore) return false;
    if (!stream.isIdle) return false;
    this.#converged(stream, this.#world);
    return true;
  }

  #converged(stream: XdsStream, { version, changedAt }: World): void {
    if (stream.convergedVersion === version) return;
    stream.convergedVersion = version;
    const { clock, metrics } = this.#options;
    metrics.observe("pilot_proxy_convergence_time", (clock.now() - changedAt) / 1000);
  }

  /** The next stream that can be served. */
  #take(): XdsStream | undefined {
    const { clock, metrics } = this.#options;
    for (const [budget, queue] of this.#queues) {
      if (budget.isSpent) {
        if (queue.size > 0) this.#awaitRoom(budget);
        continue;
      }
      for (const stream of queue) {
        queue.delete(stream);
        // It was queued while its configuration was built, which has been sent since: it is woken when that has left.
        if (stream.isFlushing) continue;
        metrics.observe("pilot_proxy_queue_time", (clock.now() - stream.queuedAt) / 1000);
        return stream;
      }
    }
    return undefined;
  }

  /** What was read may have been no response of ours. */
  #awaitRoom(budget: ByteBudget): void {
    if (this.#awaited.has(budget)) return;
    this.#awaited.add(budget);
    budget.whenRoom(() => {
      this.#awaited.delete(budget);
      this.#wakeUp();
    });
  }

  #queueOf({ budget }: XdsStream): Set<XdsStream> {
    const queue = this.#queues.get(budget);
    if (queue === undefined) throw new Error("A stream has a budget that is not one of ours");
    return queue;
  }

  async #idle(signal: AbortSignal): Promise<void> {
    this.#cancelForgetting = this.#options.clock.after(SHARED_FOR_MS, () => this.#forgetShared());
    await new Promise<void>((resolve) => {
      this.#wakeUp = resolve;
      if (signal.aborted) resolve();
    });
    this.#wakeUp = () => undefined;
    this.#cancelForgetting();
  }

  #serve(stream: XdsStream): Promise<void> | undefined {
    const world = this.#world;
    try {
      if (stream.isClosed) this.#forget(stream);
      else if (world !== undefined) {
        const start = this.#options.clock.now();
        const unready = this.#target(stream, world);
        if (unready !== undefined) return this.#serveLater(stream, { world, start, unready });
        this.#sendNext(stream, world, start);
      }
      this.#countCache();
    } catch (thrown) {
      this.#failed(stream, thrown);
    }
    return undefined;
  }

  async #serveLater(stream: XdsStream, { world, start, unready }: Serving): Promise<void> {
    try {
      await unready;
      // Something may have happened meanwhile.
      if (stream.isClosed || stream.newTypes.length > 0) this.wake(stream);
      else this.#sendNext(stream, world, start);
      this.#countCache();
    } catch (thrown) {
      this.#failed(stream, thrown);
    }
  }

  /** A bug in planning one proxy's configuration must not keep the others from theirs; this one keeps what it has. */
  #failed(stream: XdsStream, thrown: unknown): void {
    this.#options.metrics.count("pilot_total_xds_internal_errors");
    this.#options.log.error("cannot push", { node: stream.proxy.nodeId, reason: errorText(thrown) });
  }

  #countCache(): void {
    const { metrics } = this.#options;
    const { hits, misses, forgotten } = this.#catalogue.takeCounts();
    if (hits > 0) metrics.count("xds_cache_reads", { type: "hit" }, hits);
    if (misses > 0) metrics.count("xds_cache_reads", { type: "miss" }, misses);
    if (forgotten > 0) metrics.count("xds_cache_evictions", {}, forgotten);
    if (misses + forgotten > 0) metrics.set("xds_cache_size", this.#catalogue.size.resources);
  }

  #forget(stream: XdsStream): void {
    this.#catalogue.use(undefined, stream.parts);
    stream.parts = undefined;
  }

  /**
   * From now on the stream is of this world, as far as it may be. Endpoints are always the newest. Clusters, listeners,
   * routes and then names become the newest together, when the proxy has taken all of the last round: else a row of changes
   * to clusters could keep its listeners waiting for ever. Where both are new clusters go first: they have to know the
   * identity of a new endpoint before anything is sent to it. Undefined if that was done at once.
   */
  #target(stream: XdsStream, world: World): Promise<void> | undefined {
    const parts = this.#partsFor(stream, world);
    // After a response has left, and after its answer, nothing is new but what the proxy itself asked for.
    if (stream.targetVersion === world.version && !stream.asksForMore) return undefined;
    const aim = { parts, world };
    return this.#targetReady(stream, aim) ? undefined : this.#targetBuilt(stream, aim);
  }

  /** False where something has to be built first. */
  #targetReady(stream: XdsStream, aim: Aim): boolean {
    const early = this.#finder.ready(stream, aim, "early");
    if (early === undefined) return false;
    const round = this.#isFree(stream) ? this.#finder.ready(stream, aim, "round") : NO_ROUND;
    if (round === undefined) return false;
    retarget(stream, { early, round }, aim);
    return true;
  }

  async #targetBuilt(stream: XdsStream, aim: Aim): Promise<void> {
    const early = await this.#finder.built(stream, aim, "early");
    const round = this.#isFree(stream) ? await this.#finder.built(stream, aim, "round") : NO_ROUND;
    retarget(stream, { early, round }, aim);
  }

  /** Whether the next round may begin: it has taken all of the last one, or has not had any. */
  #isFree(stream: XdsStream): boolean {
    return hasNewRound(stream) || stream.isIdle;
  }

  #sendNext(stream: XdsStream, world: World, start: number): void {
    const { clock, metrics } = this.#options;
    const next = nextResponse(stream.session, clock.now());
    if (next.kind === "send") {
      stream.send(next, this.#responses.encode(stream.session.kind, next, `${world.version}`));
      metrics.observe("pilot_xds_push_time", (clock.now() - start) / 1000, { type: shortTypeName(next.typeUrl) });
    } else if (next.kind === "wait") {
      if (next.until !== undefined) stream.wakeAt(next.until);
    } else if (stream.targetVersion !== world.version) this.wake(stream);
    else this.#converged(stream, world);
  }

  #partsFor(stream: XdsStream, world: World): ProxyParts {
    if (stream.parts !== undefined && stream.partsVersion === world.version) return stream.parts;
    const parts = this.#options.partsOf(world.snapshot, stream.proxy);
    this.#catalogue.use(parts, stream.parts);
    stream.parts = parts;
    stream.partsVersion = world.version;
    return parts;
  }
}

interface NewTargets {
  readonly early: Targets<BuiltResource>;
  readonly round: Targets<BuiltResource> | typeof NO_ROUND;
}

function retarget(stream: XdsStream, { early, round }: NewTargets, { world }: Aim): void {
  stream.retarget(early);
  if (round === NO_ROUND) return;
  stream.retarget(round);
  stream.targetVersion = world.version;
}
