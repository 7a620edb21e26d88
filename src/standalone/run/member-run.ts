/**
 * The life of one member: traffic capture, then the proxy, then the app, then listed in the registry for as long as all of
 * it is ready. Each process comes back on its own; a proxy that is down takes the member out of the registry, not the app.
 */

import { sleep } from "#lib/async/sleep.ts";
import { type ProbeResult, type ProbeTiming, probe, type Target, watchReadiness } from "../fabric/probe.ts";
import { runCommand } from "../host/command.ts";
import { restoreRules } from "../host/namespaces.ts";
import { FABRIC } from "../plan/names.ts";
import { PROBE_RULES } from "../plan/network.ts";
import type { AppPlan, MemberPlan } from "../plan/plan.ts";
import type { ProxyPlan } from "../plan/proxy.ts";
import type { MemberStatus } from "./status.ts";
import { Unit } from "./unit.ts";

export interface MemberHooks {
  readonly onChange: () => void;
  /** Readiness changed. */
  readonly onReady: (ready: boolean) => void;
}

/** When what ends: apps first, so that their last calls still have a proxy. */
export interface StopSignals {
  readonly apps: AbortSignal;
  readonly proxies: AbortSignal;
}

/** Envoy's readiness through the port that the kubelet asks. */
const PROXY_READINESS = { port: 15021, httpGet: { path: "/healthz/ready", headers: {} }, timeoutMs: 3000 };
const PROXY_TIMING: ProbeTiming = { initialDelayMs: 0, periodMs: 2000, failureThreshold: 3, successThreshold: 1 };
/** Nothing is lost when a proxy ends with the whole mesh. */
const PROXY_GRACE_MS = 500;
const APP_GRACE_MS = 5000;
const SURVIVAL_MS = 250;

export class MemberRun {
  readonly plan: MemberPlan;
  readonly #hooks: MemberHooks;
  readonly #proxy: Unit | undefined;
  readonly #app: Unit | undefined;
  readonly #proxyUp = Promise.withResolvers<void>();
  /** Why each part is not ready. */
  readonly #reasons: { proxy: ProbeResult; app: ProbeResult };
  #appRun: Promise<void> | undefined;
  #ready = false;

  constructor(plan: MemberPlan, hooks: MemberHooks) {
    this.plan = plan;
    this.#hooks = hooks;
    this.#proxy = plan.proxy && this.#proxyUnit(plan.proxy);
    this.#app = plan.app && this.#appUnit(plan.app);
    this.#reasons = {
      proxy: plan.proxy && "proxy not started",
      app: plan.app && "not started",
    };
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** Rules that must be there before the first packet. */
  async capture(): Promise<void> {
    const capture = this.plan.proxy?.capture;
    if (capture === undefined) return;
    await runCommand({ argv: capture.argv, env: capture.env, cwd: capture.cwd });
    await restoreRules(this.plan.place.netns, PROBE_RULES);
  }

  /** Keeps proxy and app alive; resolves when both have ended. */
  async run({ apps, proxies }: StopSignals): Promise<void> {
    const proxy = this.#proxy?.run(proxies);
    if (proxy === undefined) this.#proxyUp.resolve();
    apps.addEventListener("abort", () => this.#proxyUp.resolve(), { once: true });
    this.#appRun = this.#proxyUp.promise.then(() => this.#app?.run(apps));
    await Promise.all([proxy, this.#appRun]);
  }

  /** Resolves when the app has ended, which it does after its signal. */
  async appEnded(): Promise<void> {
    await this.#appRun;
  }

  status(): MemberStatus {
    const { member, address, proxy, app } = this.plan;
    return {
      name: member.name,
      workload: member.workload,
      namespace: member.namespace,
      kind: member.proxy === "router" ? "gateway" : "workload",
      address,
      ports: member.ports,
      ready: this.#ready,
      reason: this.#reason() ?? "",
      app: this.#app?.status,
      proxy: this.#proxy?.status,
      logs: { app: app?.process.log, proxy: proxy?.process.log },
      shell: this.plan.shell,
    };
  }

  #proxyUnit(plan: ProxyPlan): Unit {
    return new Unit({
      plan: plan.process,
      graceMs: PROXY_GRACE_MS,
      onChange: (status) =>
        this.#settle("proxy", status.state === "running" ? "proxy starting" : exitReason("proxy", status)),
      beside: (signal) => this.#watch("proxy", { target: PROXY_READINESS, timing: PROXY_TIMING }, signal),
    });
  }

  #appUnit({ process, readiness }: AppPlan): Unit {
    return new Unit({
      plan: process,
      graceMs: APP_GRACE_MS,
      onChange: (status) => this.#settle("app", status.state === "running" ? "starting" : exitReason("app", status)),
      beside: (signal) =>
        readiness === undefined
          ? this.#waitAndSee(signal)
          : this.#watch("app", { target: readiness, timing: readiness }, signal),
    });
  }

  /** An app that nobody can ask is ready when it did not end at once. */
  async #waitAndSee(signal: AbortSignal): Promise<void> {
    await sleep(SURVIVAL_MS, signal);
    if (!signal.aborted) this.#settle("app", undefined);
  }

  #watch(
    part: "proxy" | "app",
    { target, timing }: { readonly target: Omit<Target, "address">; readonly timing: ProbeTiming },
    signal: AbortSignal,
  ): Promise<void> {
    const ask = () => probe({ ...target, address: this.plan.address, from: FABRIC.prober });
    const onChange = (result: ProbeResult) => this.#settle(part, result && `${part} not ready: ${result}`);
    return watchReadiness({ ask, timing, onChange }, signal);
  }

  #settle(part: "proxy" | "app", reason: ProbeResult): void {
    this.#reasons[part] = reason;
    if (part === "proxy" && reason === undefined) this.#proxyUp.resolve();
    const ready = this.#reason() === undefined;
    if (ready !== this.#ready) {
      this.#ready = ready;
      this.#hooks.onReady(ready);
    }
    this.#hooks.onChange();
  }

  #reason(): ProbeResult {
    return this.#reasons.proxy ?? this.#reasons.app;
  }
}

function exitReason(part: string, status: Unit["status"]): string {
  return status.lastExit === undefined ? `${part} ${status.state}` : `${part} ${status.lastExit}`;
}
