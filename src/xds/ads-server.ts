/**
 * The xDS server: `envoy.service.discovery.v3.AggregatedDiscoveryService` and the services of single types, as delta and as
 * state of the world.
 *
 * ```
 *  Source ── snapshot ──> ChangeGate ── release ──> Pusher <── wake ── XdsStream <── requests ── proxy
 *                         (debounce)                  │                    ^  │
 *                                                     │ one stream at a    │  └── Session of protocol/: what the proxy
 *                                                     │ time, in slices    │      has, wants, rejected; what comes next
 *                                                     v                    │
 *      partsOf(snapshot, proxy) ──> Catalogue ── layers ──> retarget, nextResponse
 *      (views of translate/)        │ part = view, shared      │
 *                                   v                          v
 *                                RecipeCache               Responses ── one buffer for all proxies that are told the same
 *                                (bytes, once per input)
 * ```
 *
 * A snapshot makes the pusher look at every stream. What a proxy's configuration is made of are parts, each planned and
 * built once for all proxies that have it, into layers that are replaced only when something in them changed. The session
 * compares layers, in most cases by identity, and yields the next response. Proxies that are told the same are in the same
 * state: that state, each step from it, and the bytes of the response are shared by all of them.
 */

import type { RefusalReason } from "#lib/admission/admission.ts";
import { joined } from "#lib/grpc/messages.ts";
import type { Methods, ServerCall } from "#lib/grpc/server-call.ts";
import { STATUS } from "#lib/grpc/status.ts";
import { LimitedLog } from "#lib/log/limited-log.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type {
  Caller,
  ConnectedProxy,
  DebugAnswers,
  ProxyObserver,
  SendBudget,
  Source,
  StatusAnswers,
} from "#model/ports.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { HEALTH_TYPE, PROXY_CONFIG_TYPE } from "#protocol/messages/type-urls.ts";
import { PushJournal } from "./journal/push-journal.ts";
import { IdlePatchReport } from "./metrics/idle-patches.ts";
import { type Metrics, NO_METRICS } from "./metrics/metrics.ts";
import { patchCounter } from "./metrics/patch-status.ts";
import { likelyProxy } from "./parts/likely-proxy.ts";
import type { PartsOf } from "./parts/parts.ts";
import { withTrustRoots } from "./parts/trust-roots.ts";
import { ChangeGate } from "./push/change-gate.ts";
import { Pusher } from "./push/pusher.ts";
import { ByteBudget } from "./stream/byte-budget.ts";
import { ConnectedLimit } from "./stream/connected-limit.ts";
import { DebugDesk } from "./stream/debug-desk.ts";
import { debugQuestion } from "./stream/debug-question.ts";
import { DIALECTS, type Dialect, envelopeIn } from "./stream/dialect.ts";
import { type Authenticate, authenticated, introduced } from "./stream/introduction.ts";
import { Refusal } from "./stream/refusal.ts";
import { RequestLimit } from "./stream/request-limit.ts";
import { SentSecrets } from "./stream/sent-secrets.ts";
import { XdsStream } from "./stream/xds-stream.ts";
import { type Clock, SYSTEM_CLOCK } from "./timing/clock.ts";
import type { DebounceSettings } from "./timing/debounce.ts";

export interface AdsServerOptions {
  /** Should begin to read after the server was made, so that it hears of the first snapshot. */
  readonly source: Source;
  /** The newest snapshot, if the source already has one. */
  readonly initial?: Snapshot;
  readonly partsOf: PartsOf;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly metrics?: Metrics;
  readonly limits?: Partial<AdsLimits>;
  /** Who answers questions for debug pages; nobody when not given. */
  readonly debug?: DebugAnswers;
  /** Who answers istioctl's questions about proxies; nobody when not given. */
  readonly status?: StatusAnswers;
  /** Whether a proxy has to be of the namespace and account that its caller proved; true when not given. */
  readonly checksIdentity?: boolean;
  /** Counts which EnvoyFilters have an effect. */
  readonly countsPatches?: boolean;
  /** How long changes wait for others, where an operator said so. */
  readonly debounce?: DebounceSettings;
  /** Hears of proxies, and may refuse them. */
  readonly observer?: ProxyObserver;
  /** Where changes and pushes are noted for people. */
  readonly journal?: PushJournal;
  /** Who answers, as proxies show it. */
  readonly controlPlane?: string;
  /** PEM of the roots that workloads trust; agents that ask for them are answered only where this is given. */
  readonly trustRoots?: () => readonly string[];
}

export interface AdsLimits {
  /** Connected proxies, of each port. */
  readonly streams: number;
  /** New streams a second of each port; 0 for any number. */
  readonly requestsPerSecond: number;
  /** How long they may take for it. */
  readonly introductionMs: number;
  /** Resources that a proxy may ask for by name. */
  readonly names: number;
  /** How long a proxy may take to read a response. */
  readonly sendMs: number;
  /** Responses that wait to be read, over all streams. */
  readonly bufferedBytes: number;
  /** Responses kept for other proxies. */
  readonly sharedBytes: number;
}

/** A control plane of the size that fits one machine; the bytes are what a few large pushes need. */
const DEFAULT_LIMITS: AdsLimits = {
  streams: 20_000,
  requestsPerSecond: 0,
  introductionMs: 10_000,
  names: 100_000,
  sendMs: 30_000,
  bufferedBytes: 16 * 1024 * 1024,
  sharedBytes: 16 * 1024 * 1024,
};

/** Istiod says nothing to these either. */
const UNANSWERED: ReadonlySet<string> = new Set([HEALTH_TYPE]);
const WITHOUT_ROOTS: ReadonlySet<string> = new Set([HEALTH_TYPE, PROXY_CONFIG_TYPE]);

/** Debug answers may take one part in so many of what waits to be read: pushes go on beside them. */
const DEBUG_SHARE = 4;
/** Versions of proxies whose number is told. */
const MAX_VERSIONS = 100;

/** Where and how a stream came. */
interface Port {
  readonly dialect: Dialect;
  readonly authenticate: Authenticate;
  readonly limit: RequestLimit | undefined;
}

/** A stream whose first request was read. */
interface Introduced {
  readonly dialect: Dialect;
  readonly proxy: MeshProxy;
  readonly caller: Caller | undefined;
  readonly desk: DebugDesk;
}

export class AdsServer {
  readonly #unsubscribe: () => void;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #limits: AdsLimits;
  /** Of streams that proved who they are, and of the others: slow readers among these must not keep the first from their pushes. */
  readonly #budgets: Readonly<Record<"proven" | "unproven", ByteBudget>>;
  /** For debug answers; part of the first one. */
  readonly debugBudget: SendBudget;
  readonly #journal: PushJournal;
  readonly #secrets: SentSecrets;
  readonly #options: AdsServerOptions;
  readonly #places: ConnectedLimit;
  readonly #refusals: LimitedLog;
  readonly #pusher: Pusher;
  readonly #gate: ChangeGate;
  readonly #idlePatches: IdlePatchReport;
  readonly #connected = new Map<string, number>();
  #count = 0;
  #largestRequest = 0;
  #stopped = false;

  constructor(options: AdsServerOptions) {
    const { source, log, clock = SYSTEM_CLOCK, metrics = NO_METRICS, controlPlane = "", trustRoots } = options;
    const partsOf = trustRoots === undefined ? options.partsOf : withTrustRoots(options.partsOf, trustRoots);
    this.#log = log.scope("ads");
    this.#clock = clock;
    this.#metrics = metrics;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#options = options;
    this.#places = new ConnectedLimit(this.#limits.streams);
    this.#refusals = new LimitedLog({ log: this.#log, now: () => clock.now() });
    this.#journal = options.journal ?? new PushJournal();
    this.#secrets = new SentSecrets({ log: this.#log, metrics, clock });
    const { bufferedBytes, sharedBytes: maxSharedBytes } = this.#limits;
    this.#budgets = { proven: new ByteBudget(bufferedBytes), unproven: new ByteBudget(bufferedBytes) };
    this.debugBudget = new ByteBudget(bufferedBytes / DEBUG_SHARE, this.#budgets.proven);
    const shared = { log: this.#log, metrics, clock, budgets: Object.values(this.#budgets), maxSharedBytes };
    this.#pusher = new Pusher({ ...shared, partsOf, controlPlane });
    const proxies = () => [...this.#pusher.streams].map((stream) => stream.proxy);
    const onChecked = options.countsPatches === true ? patchCounter(metrics) : undefined;
    this.#idlePatches = new IdlePatchReport({ log: this.#log, clock, proxies, onChecked });
    const release = (snapshot: Snapshot, at: number) => this.#release(snapshot, at);
    this.#gate = new ChangeGate({ clock, metrics, debounce: options.debounce, release });
    this.#unsubscribe = source.subscribe((snapshot) => this.#gate.offer(snapshot));
    if (options.initial !== undefined) this.#gate.offer(options.initial);
  }

  /** The service for a port where callers prove themselves in that way. */
  service(authenticate: Authenticate): Methods {
    const { requestsPerSecond } = this.#limits;
    const limit = requestsPerSecond > 0 ? new RequestLimit(requestsPerSecond) : undefined;
    const accept = (dialect: Dialect) => (call: ServerCall) =>
      void this.#accept(call, { dialect, authenticate, limit });
    return Object.fromEntries(DIALECTS.map((dialect) => [dialect.path, accept(dialect)]));
  }

  /** Follows the source and serves the streams until the signal is aborted; then they all end. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#pusher.run(signal);
    this.#stopped = true;
    this.#unsubscribe();
    this.#gate.stop();
    this.#idlePatches.stop();
    const reason = new Refusal(STATUS.UNAVAILABLE, "The control plane is shutting down");
    for (const stream of this.#pusher.streams) stream.end(reason);
  }

  /** Makes the first proxies wait less; to be called when there is a snapshot. */
  async prepare(): Promise<void> {
    try {
      await this.#pusher.prepare(likelyProxy(this.#options.source.current()));
    } catch (thrown) {
      // It is said again when it matters: as soon as a proxy gets the same.
      this.#log.error("cannot build configuration", { reason: errorText(thrown) });
    }
  }

  /** The trusted roots changed: they go out at once. */
  refresh(): void {
    this.#pusher.refresh();
  }

  /** The proxies that are connected, in the order they came. */
  connections(): readonly ConnectedProxy[] {
    return [...this.#pusher.streams].map((stream) => stream.describe());
  }

  /** Whether the newest state of the mesh was sent to all of them, and nothing waits for an answer. */
  get hasSentAll(): boolean {
    return !this.#gate.isHolding && this.#pusher.hasSentAll;
  }

  /** What is held for them: parts of configuration, and resources. */
  get held(): { readonly parts: number; readonly resources: number } {
    return this.#pusher.held;
  }

  #release(snapshot: Snapshot, changedAt: number): void {
    this.#journal.released(snapshot, { changedAt, releasedAt: this.#clock.now() });
    this.#pusher.release(snapshot, changedAt);
    this.#idlePatches.changed(snapshot);
  }

  async #accept(call: ServerCall, { dialect, authenticate, limit }: Port): Promise<void> {
    const { introductionMs } = this.#limits;
    if (this.#stopped) return call.end(new Refusal(STATUS.UNAVAILABLE, "The control plane is shutting down"));
    let known = false;
    const leave = () => {
      known = true;
      cancel();
    };
    let stream: XdsStream | undefined;
    const end = (thrown: unknown) => {
      leave();
      desk.close();
      (stream ?? call).end(this.#refusal(call, thrown));
    };
    const desk = this.#desk(call, end);
    const late = new Refusal(STATUS.DEADLINE_EXCEEDED, `No request with a node came in ${introductionMs} ms`);
    const cancel = this.#clock.after(introductionMs, () => end(late));
    call.gone.addEventListener("abort", () => {
      leave();
      desk.close();
    });
    const receive = (bytes: Buffer) => {
      this.#measure(bytes);
      if (this.#answersDebug(desk, bytes, { dialect, caller })) return;
      if (stream === undefined) {
        const { node, typeUrl } = envelopeIn(dialect, bytes);
        // An agent may tell how its workload is before its Envoy has said which proxy they are.
        if (node === undefined && typeUrl === HEALTH_TYPE) return;
        stream = this.#open(call, { dialect, proxy: this.#introduced(node, caller), caller, desk });
        call.introduced();
      }
      leave();
      stream.receive(bytes);
    };
    let caller: Caller | undefined;
    try {
      caller = await authenticated(call, authenticate);
      if (caller !== undefined) call.authenticated(caller.identity);
      await this.#itsTurn(limit);
      if (known) return; // it left, or was sent away, meanwhile
      call.serve({
        introducesCaller: true,
        message: (message) => guarded(() => receive(joined(message)), end),
        end: () => {
          leave();
          desk.finish(() => (stream === undefined ? call.end() : stream.finish()));
        },
      });
    } catch (thrown) {
      end(thrown);
    }
  }

  /** Waits until the stream may begin. */
  async #itsTurn(limit: RequestLimit | undefined): Promise<void> {
    const wait = limit === undefined ? 0 : limit.turn(this.#clock.now());
    if (wait === undefined) throw new Refusal(STATUS.RESOURCE_EXHAUSTED, "Too many streams at once: try again later");
    if (wait > 0) await new Promise<void>((resolve) => void this.#clock.after(wait, resolve));
  }

  #introduced(node: Uint8Array | undefined, caller: Caller | undefined): MeshProxy {
    return introduced(node, caller, { checked: this.#options.checksIdentity ?? true });
  }

  #answersDebug(desk: DebugDesk, bytes: Buffer, from: { dialect: Dialect; caller: Caller | undefined }): boolean {
    const question = debugQuestion(from.dialect, bytes);
    if (question === undefined) return false;
    if (!question.isAnswer) desk.ask(question, { ...from, ...this.#options });
    return true;
  }

  #desk(call: ServerCall, fail: (thrown: unknown) => void): DebugDesk {
    return new DebugDesk({ call, fail, budget: this.debugBudget, clock: this.#clock, sendMs: this.#limits.sendMs });
  }

  #open(call: ServerCall, { dialect, proxy, caller, desk }: Introduced): XdsStream {
    const { names, sendMs } = this.#limits;
    const crowded = this.#places.refusal(caller);
    if (crowded !== undefined) throw new Refusal(STATUS.RESOURCE_EXHAUSTED, crowded);
    const stream = new XdsStream({
      id: `${proxy.id}-${++this.#count}`,
      call,
      dialect,
      steps: this.#pusher.steps,
      proxy,
      log: this.#log,
      metrics: this.#metrics,
      clock: this.#clock,
      sendTimeoutMs: sendMs,
      maxNames: names,
      unanswered: this.#options.trustRoots === undefined ? WITHOUT_ROOTS : UNANSWERED,
      budget: this.#budgets[proxy.verified === undefined ? "unproven" : "proven"],
      journal: this.#journal,
      secrets: this.#secrets,
      health: (of, problem) => this.#options.observer?.health(of.observed, problem),
      wake: (woken) => this.#pusher.wake(woken),
      closed: (gone) => {
        desk.close();
        this.#left(gone, caller);
      },
    });
    const refused = this.#options.observer?.connected(stream.observed);
    if (refused !== undefined) throw new Refusal(STATUS.FAILED_PRECONDITION, refused);
    this.#pusher.add(stream);
    this.#places.add(caller, 1);
    this.#idlePatches.changed();
    this.#countProxies(stream, 1);
    this.#log.info("proxy connected", { node: proxy.nodeId, peer: call.peer });
    return stream;
  }

  #left(stream: XdsStream, caller: Caller | undefined): void {
    if (!this.#pusher.remove(stream)) return; // refused before it was one of ours
    this.#places.add(caller, -1);
    this.#options.observer?.disconnected(stream.observed);
    this.#countProxies(stream, -1);
    this.#log.info("proxy disconnected", { node: stream.proxy.nodeId });
  }

  #countProxies({ istioVersion: version }: XdsStream, difference: number): void {
    const count = (this.#connected.get(version) ?? 0) + difference;
    this.#connected.delete(version);
    this.#connected.set(version, count);
    this.#metrics.set("pilot_xds", count, { version });
    if (this.#connected.size > MAX_VERSIONS) this.#forgetVersion();
  }

  /** Drops the version that no proxy has for the longest time: callers can make up any number of versions. */
  #forgetVersion(): void {
    for (const [version, count] of this.#connected) {
      if (count > 0) continue;
      this.#connected.delete(version);
      this.#metrics.remove?.("pilot_xds", { version });
      return;
    }
  }

  /** What a stream is told that ends for this reason. */
  #refusal(call: ServerCall, thrown: unknown): Refusal {
    if (thrown instanceof Refusal) {
      call.refused(reasonOf(thrown));
      this.#refusals.warn("stream refused", { peer: call.peer, reason: thrown.message });
      return thrown;
    }
    this.#metrics.count("pilot_total_xds_internal_errors");
    this.#log.error("stream failed", { peer: call.peer, reason: errorText(thrown) });
    return new Refusal(STATUS.INTERNAL, "internal error", { cause: thrown });
  }

  #measure({ length }: Buffer): void {
    if (length <= this.#largestRequest) return;
    this.#largestRequest = length;
    this.#metrics.set("pilot_xds_recv_max", length);
  }
}

const REASONS: Readonly<Record<number, RefusalReason>> = {
  [STATUS.UNAUTHENTICATED]: "unauthenticated",
  [STATUS.PERMISSION_DENIED]: "forbidden",
  [STATUS.RESOURCE_EXHAUSTED]: "no_room",
  [STATUS.DEADLINE_EXCEEDED]: "timeout",
};

function reasonOf({ code }: Refusal): RefusalReason {
  return REASONS[code] ?? "invalid";
}

function guarded(work: () => void, failed: (thrown: unknown) => void): void {
  try {
    work();
  } catch (thrown) {
    failed(thrown);
  }
}
