/**
 * The life of one member: traffic capture, then the proxy, then whatever the app waits for, then the app, then listed in
 * the registry for as long as all of it is ready. Each process comes back on its own; a proxy that is down takes the member
 * out of the registry, not the app. A job that has ended takes its proxy with it.
 */

import { sleep } from "#lib/async/sleep.ts";
import { type ProbeResult, type ProbeTiming, probe, watchReadiness } from "../fabric/probe.ts";
import { runCommand } from "../host/command.ts";
import { makeGroups, outOfMemoryKills } from "../host/control-groups.ts";
import { keepPlace } from "../host/keepers.ts";
import { restoreRules } from "../host/namespaces.ts";
import { accountsHere } from "../host/user-namespace.ts";
import { isJob, type Probe } from "../mesh/mesh.ts";
import { formatMemory } from "../mesh/quantity.ts";
import { FABRIC } from "../plan/names.ts";
import { PROBE_RULES } from "../plan/network.ts";
import type { AppPlan, MemberPlan } from "../plan/plan.ts";
import type { ProxyPlan } from "../plan/proxy.ts";
import { markedCaptureRules } from "../rootless/marked-rules.ts";
import type { MemberState, MemberStatus } from "../status/status.ts";
import { probeExec } from "../supervise/probe-exec.ts";
import { type SharedAgent, SharedProxy } from "../supervise/shared-proxy.ts";
import { Unit, type UnitStatus } from "../supervise/unit.ts";
import { watchLiveness } from "../supervise/watch-liveness.ts";

export interface MemberHooks {
  readonly onChange: () => void;
  /** Readiness changed. */
  readonly onReady: (ready: boolean) => void;
  /** Something that a person should know. */
  readonly onEvent: (line: string) => void;
  /** What the app still waits for; undefined when it may start. */
  readonly missing: () => string | undefined;
  /** Runs the proxies of members that are planned for it. */
  readonly sharedAgent: SharedAgent;
  /** Resolves when proxies can be started. */
  readonly prerequisites: Promise<void>;
}

/** Envoy's readiness through the port that the kubelet asks. */
const PROXY_READINESS = { port: 15021, httpGet: { path: "/healthz/ready", headers: {} }, timeoutMs: 3000 };
const PROXY_TIMING: ProbeTiming = { initialDelayMs: 0, periodMs: 2000, failureThreshold: 3, successThreshold: 1 };
/** Nothing is lost when a proxy ends after its app. */
const PROXY_GRACE_MS = 500;
const APP_GRACE_MS = 5000;
/** How long an app must live that nobody can ask; longer when it has just failed to. */
const SURVIVAL_MS = 400;
const SECOND_SURVIVAL_MS = 3000;
/** So many ends in a row are said once more; a mesh that is only starting has failed before. */
const MANY_EXITS = 5;

/** From a start to the stop that belongs to it. */
interface Life {
  readonly apps: AbortController;
  readonly proxies: AbortController;
  readonly proxyUp: PromiseWithResolvers<void>;
  readonly mayStart: PromiseWithResolvers<void>;
  readonly appEnded: PromiseWithResolvers<void>;
  ended: Promise<void>;
}

type Part = "proxy" | "app";

export class MemberRun {
  readonly #hooks: MemberHooks;
  #plan: MemberPlan;
  #proxy: Unit | SharedProxy | undefined;
  #app: Unit | undefined;
  #life: Life | undefined;
  #state: MemberState = "stopped";
  #failure: unknown;
  #captured = false;
  /** Processes of the app that the kernel ended because of its memory limit, as last counted. */
  #memoryKills = 0;
  /** Why each part is not ready. */
  #reasons: Record<Part, ProbeResult> = { proxy: undefined, app: undefined };
  #ready = false;
  #firstReady: PromiseWithResolvers<void> | undefined;

  constructor(plan: MemberPlan, hooks: MemberHooks) {
    this.#plan = plan;
    this.#hooks = hooks;
  }

  get plan(): MemberPlan {
    return this.#plan;
  }

  get ready(): boolean {
    return this.#ready;
  }

  get state(): MemberState {
    return this.#state;
  }

  /** What made it impossible to run the member at all. */
  get failure(): unknown {
    return this.#failure;
  }

  get proxyReady(): boolean {
    return this.#life !== undefined && this.#reasons.proxy === undefined;
  }

  /** Exit code of the app, when it has ended. */
  get exitCode(): number | undefined {
    return this.#app?.status.exitCode;
  }

  /** Starts proxy and app, unless they are. */
  start(): void {
    if (this.#life !== undefined && this.#state === "running") return;
    const life = newLife();
    const { proxy, app } = this.#plan;
    this.#proxy = proxy && this.#proxyUnit(proxy);
    this.#app = app && this.#appUnit(app);
    this.#reasons = { proxy: proxy && "proxy not started", app: app && "not started" };
    this.#state = "running";
    this.#life = life;
    life.ended = this.#live(life)
      .catch((error) => {
        this.#failure = error;
      })
      .finally(() => life.appEnded.resolve());
    this.#settle("app", this.#reasons.app);
  }

  /** Asks the app to end; resolves when it has. The proxy goes on, so that its last calls arrive. */
  async stopApp(): Promise<void> {
    this.#life?.apps.abort();
    this.#life?.proxyUp.resolve();
    this.#life?.mayStart.resolve();
    await this.#life?.appEnded.promise;
  }

  /** Ends both; resolves when nothing of the member runs any more. */
  async stop(): Promise<void> {
    await this.stopApp();
    const life = this.#life;
    life?.proxies.abort();
    await life?.ended;
    this.#life = undefined;
    this.#state = "stopped";
    this.#settle("app", "stopped");
  }

  /** Goes on with another app, probes or dependencies; the proxy stays. */
  async replaceApp(plan: MemberPlan): Promise<void> {
    const life = this.#life;
    this.#plan = plan;
    if (life === undefined || this.#state !== "running") {
      await this.stop();
      this.start();
      return;
    }
    await this.stopApp();
    this.#app = plan.app && this.#appUnit(plan.app);
    const proxyUp = Promise.withResolvers<void>();
    if (this.proxyReady) proxyUp.resolve();
    const next: Life = { ...newLife(), proxies: life.proxies, proxyUp };
    this.#life = next;
    next.ended = Promise.all([life.ended, this.#liveApp(next)]).then(() => undefined);
  }

  /** Something elsewhere changed: the app may be allowed to start now. */
  reconsider(): void {
    if (this.#life === undefined || this.#app?.status.state !== "waiting") return;
    const missing = this.#hooks.missing();
    if (missing === undefined) this.#life.mayStart.resolve();
    else if (this.proxyReady && this.#reasons.app !== missing) this.#settle("app", missing);
  }

  status(): MemberStatus {
    const { member, address, proxy, app, shell } = this.#plan;
    return {
      name: member.name,
      workload: member.workload,
      namespace: member.namespace,
      labels: member.labels,
      kind: member.proxy === "router" ? "gateway" : "workload",
      address,
      ports: member.ports,
      job: isJob(member),
      state: this.#state,
      ready: this.#ready,
      reason: this.#ready || this.#state === "done" ? "" : (this.#reason() ?? ""),
      app: this.#app?.status,
      proxy: this.#proxy?.status,
      logs: { app: app?.process.log, proxy: proxy?.process.log },
      shell,
    };
  }

  async #live(life: Life): Promise<void> {
    await Promise.all([this.#capture(), this.#hooks.prerequisites]);
    if (life.apps.signal.aborted) return;
    const { proxy: planned, shared } = this.#plan;
    if (planned !== undefined && shared !== undefined) await keepPlace(planned.place);
    const proxy = this.#proxy?.run(life.proxies.signal);
    if (proxy === undefined) life.proxyUp.resolve();
    await Promise.all([proxy, this.#liveApp(life)]);
  }

  /** Rules that must be there before the first packet. They stay as long as the namespace does. */
  async #capture(): Promise<void> {
    const capture = this.#plan.proxy?.capture;
    if (capture === undefined || this.#captured) return;
    const { place, range } = this.#plan;
    const { netns } = place;
    if (accountsHere() === "one") await restoreRules(netns, markedCaptureRules(capture.options, range));
    else await runCommand({ argv: capture.argv, env: capture.env, cwd: capture.cwd });
    await restoreRules(netns, PROBE_RULES);
    this.#captured = true;
  }

  async #liveApp(life: Life): Promise<void> {
    const { signal } = life.apps;
    await life.proxyUp.promise;
    if (this.#app === undefined) {
      await this.#liveWithoutApp(signal);
    } else {
      this.reconsider();
      await life.mayStart.promise;
      if (!signal.aborted) await this.#limit();
      if (!signal.aborted) await this.#app.run(signal);
    }
    life.appEnded.resolve();
    if (!signal.aborted && this.#app?.status.state === "done") this.#finish(life);
  }

  /** Limits must be there before the process that they are for. */
  async #limit(): Promise<void> {
    const { app } = this.#plan;
    if (app === undefined) return;
    await makeGroups(app.groups);
    this.#memoryKills = await outOfMemoryKills(app.groups);
  }

  /** What the exit code does not tell. */
  async #explain({ groups, app }: AppPlan): Promise<string | undefined> {
    const kills = await outOfMemoryKills(groups);
    const isMore = kills > this.#memoryKills;
    this.#memoryKills = kills;
    if (!isMore) return undefined;
    return `was killed: it needed more than its memory limit of ${formatMemory(app.limits.memoryBytes)}`;
  }

  /** A gateway, or somebody who runs things in this place on its own and may have told how to ask whether they are ready. */
  async #liveWithoutApp(signal: AbortSignal): Promise<void> {
    const { readiness } = this.#plan.member;
    if (readiness !== undefined) await this.#watchReadiness(readiness, signal);
  }

  /** A job that has ended needs no proxy any more. */
  #finish(life: Life): void {
    const { name } = this.#plan.member;
    const { exitCode, lastExit } = this.#app?.status ?? {};
    this.#state = exitCode === 0 ? "done" : "failed";
    this.#hooks.onEvent(exitCode === 0 ? `job ${name} is done` : `job ${name} failed: it ${lastExit}`);
    life.proxies.abort();
    this.#settle("app", exitCode === 0 ? "done" : `job failed: it ${lastExit}`);
  }

  #proxyUnit(plan: ProxyPlan): Unit | SharedProxy {
    const { shared } = this.#plan;
    const ask = () => probe({ ...PROXY_READINESS, address: this.#plan.address, from: FABRIC.prober });
    const onChange = (result: ProbeResult) => this.#settle("proxy", result && `proxy not ready: ${result}`);
    const options = {
      onChange: (status: UnitStatus) => {
        this.#sayEnd(`the proxy of ${this.#plan.member.name}`, status);
        this.#settle("proxy", status.state === "running" ? "proxy starting" : exitReason("proxy", status));
      },
      beside: (signal: AbortSignal) => watchReadiness({ ask, timing: PROXY_TIMING, onChange }, signal),
    };
    if (shared !== undefined) return new SharedProxy({ ...options, plan: shared, agent: this.#hooks.sharedAgent });
    return new Unit({ ...options, plan: plan.process, graceMs: PROXY_GRACE_MS });
  }

  #appUnit(plan: AppPlan): Unit {
    const { process, app } = plan;
    const { member } = this.#plan;
    const unit: Unit = new Unit({
      plan: process,
      restart: app.restart,
      explain: () => this.#explain(plan),
      graceMs: APP_GRACE_MS,
      onChange: (status) => {
        this.#sayEnd(member.name, status);
        if (status.state !== "done")
          this.#settle("app", status.state === "running" ? "starting" : exitReason("app", status));
      },
      onForce: () =>
        this.#hooks.onEvent(`${member.name} did not end within ${APP_GRACE_MS / 1000} s of SIGTERM: killed`),
      beside: async (signal) => {
        const ready =
          member.readiness === undefined
            ? this.#waitAndSee(unit, signal)
            : this.#watchReadiness(member.readiness, signal);
        await Promise.all([ready, app.liveness && this.#watchLiveness(app.liveness, unit, signal)]);
      },
    });
    return unit;
  }

  /** Who looks at the mesh hears of an end that nobody asked for; of one that ends again and again, not each time. */
  #sayEnd(name: string, { state, lastExit, quickExits }: UnitStatus): void {
    if (state !== "pausing") return;
    if (quickExits === 1) this.#hooks.onEvent(`${name} ${lastExit}: it is started again`);
    if (quickExits === MANY_EXITS) this.#hooks.onEvent(`${name} ${lastExit}, ${quickExits} times in a row`);
  }

  /** An app that nobody can ask is ready when it did not end at once. */
  async #waitAndSee({ status }: Unit, signal: AbortSignal): Promise<void> {
    await sleep(status.quickExits === 0 ? SURVIVAL_MS : SECOND_SURVIVAL_MS, signal);
    if (!signal.aborted) this.#settle("app", undefined);
  }

  #watchReadiness(readiness: Probe, signal: AbortSignal): Promise<void> {
    const onChange = (result: ProbeResult) => this.#settle("app", result && `app not ready: ${result}`);
    if (!this.#ready) this.#settle("app", "app not ready yet");
    const onWaiting = (reason: string) => {
      const told = `app not ready: ${reason}`;
      if (this.#reasons.app !== told) this.#settle("app", told);
    };
    return watchReadiness({ ask: () => this.#ask(readiness), timing: readiness, onChange, onWaiting }, signal);
  }

  /** Begins when the app has been ready for the first time: how long a start may take is not asked here. */
  async #watchLiveness(liveness: Probe, unit: Unit, signal: AbortSignal): Promise<void> {
    const firstReady = Promise.withResolvers<void>();
    this.#firstReady = firstReady;
    signal.addEventListener("abort", () => firstReady.resolve(), { once: true });
    await firstReady.promise;
    const onDead = (reason: string) => {
      this.#hooks.onEvent(`${this.#plan.member.name} is asked to end: its liveness probe failed: ${reason}`);
      unit.end();
    };
    await watchLiveness({ ask: () => this.#ask(liveness), timing: liveness, onDead }, signal);
  }

  #ask({ exec, ...target }: Probe): Promise<ProbeResult> {
    const { address, shell } = this.#plan;
    return exec === undefined
      ? probe({ ...target, address, from: FABRIC.prober })
      : probeExec(shell, exec, target.timeoutMs);
  }

  #settle(part: Part, reason: ProbeResult): void {
    this.#reasons[part] = reason;
    if (part === "proxy" && reason === undefined) this.#life?.proxyUp.resolve();
    if (part === "app" && reason === undefined) this.#firstReady?.resolve();
    const ready = this.#reason() === undefined;
    if (ready !== this.#ready) {
      this.#ready = ready;
      this.#hooks.onReady(ready);
    }
    this.#hooks.onChange();
  }

  #reason(): ProbeResult {
    if (this.#state !== "running") return this.#reasons.app ?? this.#state;
    return this.#reasons.proxy ?? this.#reasons.app;
  }
}

function newLife(): Life {
  return {
    apps: new AbortController(),
    proxies: new AbortController(),
    proxyUp: Promise.withResolvers(),
    mayStart: Promise.withResolvers(),
    appEnded: Promise.withResolvers(),
    ended: Promise.resolve(),
  };
}

function exitReason(part: string, status: Unit["status"]): string {
  return status.lastExit === undefined ? `${part} ${status.state}` : `${part} ${status.lastExit}`;
}
