/**
 * The agent that all members share: kept alive like any process, told about members by files, and listened to.
 *
 *   agents/web.default.json   --> the agent serves the member
 *   agents/web.default.state  <-- how its proxy is
 */
import { type FSWatcher, watch } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "#lib/async/sleep.ts";
import { ignoring } from "../host/ignoring.ts";
import { accountsHere } from "../host/user-namespace.ts";
import { makeFolders, writeAtomically } from "../host/write-files.ts";
import { PROXY_BOOTSTRAP } from "../plan/one-account.ts";
import type { SharedAgentPlan, SharedMemberPlan } from "../plan/shared-agent.ts";
import type { SharedAgent, SharedProxy, ToldState } from "./shared-proxy.ts";
import { Unit, type UnitStatus } from "./unit.ts";

const STATE = ".state";
const GRACE_MS = 500;
const POLL_MS = 20;
/** Longer than the agent waits for an Envoy that does not answer. */
const PATIENCE_MS = 10_000;

export class SharedAgentRun implements SharedAgent {
  readonly #proxies = new Map<string, SharedProxy>();
  /** What was last said about each, and by which process: one writing may be several events. */
  readonly #heard = new Map<string, string>();
  #plan: SharedAgentPlan | undefined;
  #unit: Unit | undefined;
  #life: { readonly stop: AbortController; readonly ended: Promise<void>; readonly watcher: FSWatcher } | undefined;

  /** The process that runs now. */
  get pid(): number | undefined {
    return this.#unit?.status.pid;
  }

  /** Starts it, by this plan from now on. */
  async start(plan: SharedAgentPlan): Promise<void> {
    await this.stop();
    this.#plan = plan;
    await makeFolders(plan.folders);
    const stop = new AbortController();
    const watcher = watch(plan.folder, (_, file) => {
      if (file?.endsWith(STATE)) void this.#read(file.slice(0, -STATE.length));
    });
    const unit = new Unit({ plan: plan.process, graceMs: GRACE_MS, onChange: (status) => this.#onChange(status) });
    this.#unit = unit;
    this.#life = { stop, ended: unit.run(stop.signal), watcher };
  }

  /** Ends it, and every Envoy that it runs. */
  async stop(): Promise<void> {
    this.#life?.stop.abort();
    await this.#life?.ended;
    this.#life?.watcher.close();
    this.#life = undefined;
  }

  async serve(proxy: SharedProxy): Promise<void> {
    const { name, workload } = proxy.plan;
    this.#proxies.set(name, proxy);
    this.#heard.delete(name);
    await rm(this.#file(name, STATE), { force: true });
    const told = accountsHere() === "one" ? withOneAccount(proxy.plan) : workload;
    const text = `${JSON.stringify(told, null, 2)}\n`;
    await writeAtomically({ path: this.#file(name, ".json"), text, mode: 0o600, owner: 0 });
  }

  async forget({ plan: { name } }: SharedProxy): Promise<void> {
    this.#proxies.delete(name);
    const { pid } = this;
    await rm(this.#file(name, ".json"), { force: true });
    const tired = AbortSignal.timeout(PATIENCE_MS);
    // Its Envoys end with the agent, and who comes after it knows nothing of this one.
    while (!tired.aborted && pid !== undefined && this.pid === pid) {
      if ((await this.#state(name)) === undefined) return;
      await sleep(POLL_MS, tired);
    }
    await rm(this.#file(name, STATE), { force: true });
  }

  #onChange({ state, lastExit }: UnitStatus): void {
    if (state === "running" || state === "waiting") return;
    for (const proxy of this.#proxies.values()) proxy.abandoned(`the shared agent ${lastExit ?? state}`);
  }

  async #read(name: string): Promise<void> {
    const proxy = this.#proxies.get(name);
    const text = proxy && (await this.#state(name));
    const told = text === undefined ? undefined : toldState(text);
    const words = `${this.pid} ${text}`;
    if (told === undefined || this.#proxies.get(name) !== proxy || this.#heard.get(name) === words) return;
    this.#heard.set(name, words);
    proxy?.told(told, this.pid);
  }

  #state(name: string): Promise<string | undefined> {
    return ignoring(["ENOENT"], () => readFile(this.#file(name, STATE), "utf8"));
  }

  #file(name: string, end: string): string {
    return join(this.#plan?.folder ?? "", `${name}${end}`);
  }
}

/** Undefined for a text that is being written: when it is, there is another event. */
function toldState(text: string): ToldState | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Where there is one account, Envoy is told by a mark from its app (`plan/one-account.ts`). */
function withOneAccount({ workload, etc }: SharedMemberPlan): SharedMemberPlan["workload"] {
  return { ...workload, user: 0, env: { ...workload.env, ISTIO_BOOTSTRAP_OVERRIDE: join(etc, PROXY_BOOTSTRAP) } };
}
