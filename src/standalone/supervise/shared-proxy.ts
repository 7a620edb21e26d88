/** A proxy that the shared agent runs: the same to its member as one with an agent of its own. */
import type { SharedMemberPlan } from "../plan/shared-agent.ts";
import { HEALTHY_MS, type UnitStatus } from "./unit.ts";

/** What the shared agent says about a member, in its file `NAME.state`. */
export interface ToldState {
  readonly state: "starting" | "ended" | "failed";
  readonly reason?: string;
}

/** The agent as its proxies see it. */
export interface SharedAgent {
  /** Begins to serve a member. */
  serve(proxy: SharedProxy): Promise<void>;
  /** Resolves when the agent has ended the member's Envoy. */
  forget(proxy: SharedProxy): Promise<void>;
}

export interface SharedProxyOptions {
  readonly plan: SharedMemberPlan;
  readonly agent: SharedAgent;
  readonly onChange: (status: UnitStatus) => void;
  /** Runs beside each life of the proxy; its signal aborts when that life ends. */
  readonly beside: (signal: AbortSignal) => Promise<void>;
}

export class SharedProxy {
  readonly #options: SharedProxyOptions;
  #life = new AbortController();
  #beside: Promise<void> = Promise.resolve();
  #startedAt = 0;
  #lives = 0;
  #status: UnitStatus = {
    state: "waiting",
    pid: undefined,
    restarts: 0,
    lastExit: undefined,
    exitCode: undefined,
    quickExits: 0,
  };

  constructor(options: SharedProxyOptions) {
    this.#options = options;
  }

  get plan(): SharedMemberPlan {
    return this.#options.plan;
  }

  get status(): UnitStatus {
    return this.#status;
  }

  /** Has the proxy served until the signal aborts; resolves when it has ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { agent } = this.#options;
    if (!signal.aborted) {
      await agent.serve(this);
      await untilAborted(signal);
    }
    this.#life.abort();
    await agent.forget(this);
    await this.#beside;
    this.#set({ state: "stopped", pid: undefined });
  }

  /** The agent, which is the process of this number, says how the proxy is. */
  told({ state, reason = "" }: ToldState, agent: number | undefined): void {
    if (state === "starting") this.#begin(agent);
    else this.#end(reason);
  }

  /** The agent itself has ended, and every Envoy with it. */
  abandoned(reason: string): void {
    if (this.#status.state === "running") this.#end(reason);
  }

  #begin(agent: number | undefined): void {
    this.#life.abort();
    const life = new AbortController();
    this.#life = life;
    this.#startedAt = Date.now();
    this.#set({ state: "running", pid: agent, restarts: this.#lives++ });
    const before = this.#beside;
    this.#beside = before.then(() => (life.signal.aborted ? undefined : this.#options.beside(life.signal)));
  }

  #end(reason: string): void {
    this.#life.abort();
    const quickExits = Date.now() - this.#startedAt >= HEALTHY_MS ? 1 : this.#status.quickExits + 1;
    this.#set({ state: "pausing", pid: undefined, lastExit: `ended: ${reason}`, exitCode: 1, quickExits });
  }

  #set(change: Partial<UnitStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#options.onChange(this.#status);
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
