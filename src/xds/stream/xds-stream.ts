/** One stream to one proxy: the shell around a session of protocol/. */
import type { ServerCall } from "#lib/grpc/server-call.ts";
import { OK, STATUS, type Status } from "#lib/grpc/status.ts";
import type { Logger } from "#lib/log/log.ts";
import type { ConnectedProxy, ObservedProxy } from "#model/ports.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { DeltaRequest } from "#protocol/messages/delta-request.ts";
import { HEALTH_TYPE, SECRET_TYPE, shortTypeName } from "#protocol/messages/type-urls.ts";
import { findResource } from "#protocol/resource.ts";
import { isIdle, newSession, receive, retargetTypes, type Session, sent } from "#protocol/session.ts";
import type { SharedSteps, Targets } from "#protocol/shared-steps.ts";
import type { Draft, Verdict } from "#protocol/subscription.ts";
import type { OpenPush, PushJournal } from "../journal/push-journal.ts";
import { codeName, type Labels, type Metrics, type XdsMetric } from "../metrics/metrics.ts";
import { type ProxyParts, viewId } from "../parts/parts.ts";
import { type BuiltResource, originsOf } from "../resources/built-resource.ts";
import type { EncodedResponse } from "../resources/responses.ts";
import type { Clock } from "../timing/clock.ts";
import { Deadline } from "../timing/deadline.ts";
import type { ByteBudget } from "./byte-budget.ts";
import { type Dialect, requestIn } from "./dialect.ts";
import { Refusal } from "./refusal.ts";
import type { SentSecrets } from "./sent-secrets.ts";
import { StreamLimits } from "./stream-limits.ts";

export interface XdsStreamOptions {
  readonly id: string;
  readonly call: ServerCall;
  readonly dialect: Dialect;
  readonly steps: SharedSteps<BuiltResource>;
  readonly proxy: MeshProxy;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** A proxy that does not take a response for so long is cut off. */
  readonly sendTimeoutMs: number;
  /** How many resources it may ask for by name. */
  readonly maxNames: number;
  /** Requests of these types get no answer. */
  readonly unanswered: ReadonlySet<string>;
  readonly budget: ByteBudget;
  readonly journal: PushJournal;
  readonly secrets: SentSecrets;
  /** The workload is well, or this is wrong with it. */
  readonly health: (stream: XdsStream, problem: string | undefined) => void;
  /** There may be something to send. */
  readonly wake: (stream: XdsStream) => void;
  readonly closed: (stream: XdsStream) => void;
}

const REJECT_METRICS: ReadonlyMap<string, XdsMetric> = new Map([
  ["cds", "pilot_xds_cds_reject"],
  ["eds", "pilot_xds_eds_reject"],
  ["lds", "pilot_xds_lds_reject"],
  ["rds", "pilot_xds_rds_reject"],
]);
/** Enough to understand a rejection; Envoy's can be as long as the response. */
const MAX_REASON = 2_000;
/** Resources and objects in a log line. */
const MAX_LISTED = 20;
/** Resources, and objects, in the journal. */
const MAX_NOTED = 100;
const MAX_OPEN = 64;
const NO_TYPES: readonly string[] = [];
const ACKNOWLEDGED = { result: "acknowledged" } as const;

export class XdsStream {
  readonly #options: XdsStreamOptions;
  readonly #connectedAt: number;
  #session: Session<BuiltResource>;
  readonly #targeted = new Set<string>();
  /** By type: when it was last sent something. */
  readonly #sentAt = new Map<string, number>();
  /** By nonce: pushes that the proxy has not answered. */
  readonly #open = new Map<string, OpenPush>();
  readonly #limits: StreamLimits;
  /** Series of metrics that are about this stream. */
  readonly #rejections = new Map<string, { readonly metric: XdsMetric; readonly labels: Labels }>();
  #closed = false;
  #isFinishing = false;
  #unflushedBytes = 0;
  /** Until what was sent has left. */
  readonly #leaving: Deadline;
  #lastSent = "";
  #cancelWake: () => void = () => undefined;
  /** What its configuration is made of, and at which version of the world that was found; kept by the pusher. */
  parts: ProxyParts | undefined;
  partsVersion = Number.NaN;
  /** Version of the world its clusters, listeners and routes are of. */
  targetVersion = Number.NaN;
  /** Version of the world that it was last at rest in. */
  convergedVersion = Number.NaN;
  /** When it came into the pusher's queue. */
  queuedAt = Number.NaN;

  constructor(options: XdsStreamOptions) {
    this.#options = options;
    this.#connectedAt = options.clock.now();
    this.#leaving = new Deadline(options.clock, options.sendTimeoutMs, () => this.#onTimeout());
    this.#limits = new StreamLimits(options.maxNames);
    this.#session = newSession(options.dialect.kind, options.steps);
    options.call.gone.addEventListener("abort", () => this.#close());
  }

  get proxy(): MeshProxy {
    return this.#options.proxy;
  }
  /** What limits it together with others. */
  get budget(): ByteBudget {
    return this.#options.budget;
  }
  get observed(): ObservedProxy {
    return { connectionId: this.#options.id, proxy: this.proxy, connectedAt: this.#connectedAt };
  }
  /** Of the agent, as it says. */
  get istioVersion(): string {
    const version = this.proxy.metadata.ISTIO_VERSION;
    return typeof version === "string" && /^[\w.+-]{1,60}$/.test(version) ? version : "unknown";
  }
  get session(): Session<BuiltResource> {
    return this.#session;
  }
  get isClosed(): boolean {
    return this.#closed;
  }
  /** A response was handed over and has not left yet. There is at most one such response. */
  get isFlushing(): boolean {
    return this.#unflushedBytes > 0;
  }

  /** A message from the proxy. */
  receive(bytes: Uint8Array): void {
    const request = requestIn(this.#options.dialect, bytes, this.#session);
    if (request.typeUrl === HEALTH_TYPE) this.#options.health(this, request.error && shown(request.error.message));
    if (this.#options.unanswered.has(request.typeUrl)) return;
    const { session, verdict } = receive(this.#session, request, this.#options.clock.now());
    // Answers to responses, as most requests are, ask for nothing new.
    if (request.subscribe.length > 0 || session.types.size > this.#session.types.size)
      this.#limits.check(session.types, request);
    this.#session = session;
    this.#judge(request, verdict);
    this.#options.wake(this);
  }

  /** Types it asked for that have no target yet. Nothing is sent before they have: it would look as if nothing existed. */
  get newTypes(): readonly string[] {
    if (this.#targeted.size === this.#session.types.size) return NO_TYPES;
    return this.#session.types.keys().filter((typeUrl) => !this.#targeted.has(typeUrl));
  }

  /** It asked for types that have no target yet, or for names that may have to be built. */
  get asksForMore(): boolean {
    const { types } = this.#session;
    return this.#targeted.size < types.size || types.values().some(({ due }) => due.size > 0);
  }

  /** From now on these are the resources of those types. */
  retarget(targets: Targets<BuiltResource>): void {
    if (this.#targeted.size < this.#session.types.size)
      for (const typeUrl of targets.keys()) this.#targeted.add(typeUrl);
    this.#session = retargetTypes(this.#session, targets);
  }

  /** Whether everything was sent, and what others wait for answered. */
  get isIdle(): boolean {
    return isIdle(this.#session, this.#options.clock.now());
  }

  send(next: { readonly typeUrl: string; readonly draft: Draft<BuiltResource> }, response: EncodedResponse): void {
    const { call, clock, metrics, budget } = this.#options;
    const sentAt = clock.now();
    this.#sentAt.set(next.typeUrl, sentAt);
    this.#session = sent(this.#session, next, { nonce: response.nonce, sentAt });
    const { length: bytes } = response.message;
    this.#unflushedBytes = bytes;
    budget.take(this.#unflushedBytes);
    this.#leaving.begin(sentAt);
    this.#lastSent = next.typeUrl;
    call.send(response.message, () => {
      if (this.#closed) return;
      this.#flushed();
      metrics.observe("pilot_xds_send_time", (clock.now() - sentAt) / 1000);
      if (this.#isFinishing) this.end();
      else this.#options.wake(this);
    });
    const type = shortTypeName(next.typeUrl);
    metrics.count("pilot_xds_pushes", { type });
    metrics.observe("pilot_xds_config_size_bytes", bytes, { type: type === "other" ? type : next.typeUrl });
    const { nodeId: node } = this.proxy;
    const { resources, repeated, removed } = next.draft;
    if (next.typeUrl === SECRET_TYPE) this.#options.secrets.sent(next.draft, node);
    const view = this.parts === undefined ? "" : viewId(this.parts, next.typeUrl);
    const count = resources.length + repeated.length;
    const push = { type, node, view, resources: count, removed: removed.length, bytes };
    this.#options.log.debug("push", push);
    // Answers that are given up are few, but a stream can live for months.
    if (this.#open.size >= MAX_OPEN) this.#open.clear();
    this.#open.set(response.nonce, this.#options.journal.sent(push, sentAt));
  }

  /** Wakes it at that time, unless something else does before. */
  wakeAt(time: number): void {
    this.#cancelWake();
    const { clock, wake } = this.#options;
    this.#cancelWake = clock.after(Math.max(0, time - clock.now()), () => wake(this));
  }

  /** The proxy has no more to ask: it gets what is on its way to it. */
  finish(): void {
    if (this.isFlushing) this.#isFinishing = true;
    else this.end();
  }

  /** The proxy is told why; it said itself that it has no more to ask when nothing is given. */
  end(reason: Status = OK): void {
    this.#options.call.end(reason);
    this.#close();
  }

  describe(): ConnectedProxy {
    const types = this.#session.types.keys().map((typeUrl) => {
      const { sent = "", acknowledged = "", rejected = "" } = this.#session.types.get(typeUrl) ?? {};
      return [typeUrl, { sent, acknowledged, rejected, sentAt: this.#sentAt.get(typeUrl) }] as const;
    });
    return {
      connectionId: this.#options.id,
      nodeId: this.proxy.nodeId,
      address: this.#options.call.peer,
      proxy: this.proxy,
      connectedAt: this.#connectedAt,
      istioVersion: this.istioVersion,
      types: new Map(types),
      disconnect: () => this.end(new Refusal(STATUS.UNAVAILABLE, "Disconnected by the operator")),
      resources: (typeUrl) => this.#resources(typeUrl),
    };
  }

  *#resources(typeUrl: string): Iterable<readonly [string, Uint8Array]> {
    const { wildcard, names, target } = this.#session.types.get(typeUrl) ?? {};
    const wanted = wildcard === true ? (target ?? []).flatMap((layer) => [...layer.keys()]) : (names ?? []);
    for (const name of new Set(wanted)) {
      const found = findResource(target ?? [], name);
      if (found !== undefined) yield [name, found.value];
    }
  }

  #judge(request: DeltaRequest, verdict: Verdict<BuiltResource>): void {
    const type = shortTypeName(request.typeUrl);
    const { metrics, log } = this.#options;
    this.#note(request, verdict);
    if (verdict.kind === "stale") metrics.count("pilot_xds_expired_nonce", { type });
    if (verdict.kind !== "rejected") return;
    metrics.count("pilot_total_xds_rejects", { type });
    const metric = REJECT_METRICS.get(type);
    if (metric !== undefined) this.#countRejection(metric, codeName(request.error?.code));
    const culprits = verdict.held.map(({ rejected }) => rejected);
    const isPatched = culprits.some(({ recipe }) => recipe.unpatched !== undefined);
    const instead = isPatched ? "gets it without the patches" : "keeps the last good version of it";
    log.warn(`proxy rejected configuration: it ${instead}`, {
      type,
      node: this.proxy.nodeId,
      resources: shownList(culprits.map(({ name }) => name)) || "not known yet",
      objects: shownList(new Set(culprits.flatMap(({ recipe }) => originsOf(recipe)))),
      reason: shown(verdict.message),
    });
  }

  /** The series live as long as the stream: callers choose the names of their nodes. */
  #countRejection(metric: XdsMetric, err: string): void {
    const labels = { node: this.proxy.id, err };
    this.#options.metrics.count(metric, labels);
    this.#rejections.set(`${metric} ${err}`, { metric, labels });
  }

  #note({ nonce }: DeltaRequest, verdict: Verdict<BuiltResource>): void {
    const push = this.#open.get(nonce);
    if (push === undefined || verdict.kind === "none" || verdict.kind === "stale") return;
    this.#open.delete(nonce);
    const now = this.#options.clock.now();
    if (verdict.kind !== "rejected") {
      push.answered(ACKNOWLEDGED, now);
      return;
    }
    const rejected = verdict.held.map((held) => held.rejected);
    const objects = new Set(rejected.flatMap(({ recipe }) => originsOf(recipe)));
    // The journal keeps thousands of these lists.
    const culprits = [...rejected.slice(0, MAX_NOTED).map(({ name }) => name), ...[...objects].slice(0, MAX_NOTED)];
    push.answered({ result: "rejected", error: shown(verdict.message), culprits }, now);
  }

  #onTimeout(): void {
    this.#options.metrics.count("pilot_xds_write_timeout");
    this.#options.log.warn("proxy does not read: it is cut off", {
      type: shortTypeName(this.#lastSent),
      node: this.proxy.nodeId,
    });
    // A status would wait behind the response, which would stay in memory for as long.
    this.#options.call.cut();
    this.#close();
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelWake();
    this.#flushed();
    this.#leaving.stop();
    for (const { metric, labels } of this.#rejections.values()) this.#options.metrics.remove?.(metric, labels);
    this.#options.closed(this);
  }

  #flushed(): void {
    this.#leaving.end();
    this.#options.budget.giveBack(this.#unflushedBytes);
    this.#unflushedBytes = 0;
  }
}

/** Of many items the first: a rejection can be about thousands. */
function shownList(items: Iterable<string>): string {
  const all = [...items];
  const more = all.length > MAX_LISTED ? ` and ${all.length - MAX_LISTED} more` : "";
  return `${all.slice(0, MAX_LISTED).join(",")}${more}`;
}

/** From outside, so it must not look like lines of ours. */
function shown(message: string): string {
  return message.slice(0, MAX_REASON).replaceAll(/\p{Cc}+/gu, " ");
}
