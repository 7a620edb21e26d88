/** The life of the control plane. While it is away, proxies go on with what they have. */
import { type ProbeResult, probe, watchReadiness } from "../fabric/probe.ts";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import type { MeshPlan } from "../plan/plan.ts";
import type { MemberStatus } from "../status/status.ts";
import { Unit } from "../supervise/unit.ts";

const TIMING = { initialDelayMs: 0, periodMs: 2000, failureThreshold: 3, successThreshold: 1 };
const TIMEOUT_MS = 2000;
const GRACE_MS = 500;
const PORTS = [
  { name: "grpc-xds", port: 15010, protocol: "TCP" },
  { name: "https-dns", port: 15012, protocol: "TCP" },
  { name: "http-monitoring", port: 15014, protocol: "TCP" },
] as const;

export class ControlPlaneRun {
  #plan: MeshPlan["controlPlane"];
  readonly #onChange: () => void;
  #unit: Unit;
  #life: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;
  #reason: ProbeResult = "not started";

  constructor(plan: MeshPlan["controlPlane"], onChange: () => void) {
    this.#plan = plan;
    this.#onChange = onChange;
    this.#unit = this.#newUnit();
  }

  get ready(): boolean {
    return this.#reason === undefined;
  }

  get running(): boolean {
    return this.#life !== undefined;
  }

  start(): void {
    if (this.#life !== undefined) return;
    const stop = new AbortController();
    this.#unit = this.#newUnit();
    this.#life = { stop, ended: this.#unit.run(stop.signal) };
  }

  async stop(): Promise<void> {
    this.#life?.stop.abort();
    await this.#life?.ended;
    this.#life = undefined;
    this.#settle("stopped");
  }

  /** Goes on by another plan. */
  async replace(plan: MeshPlan["controlPlane"]): Promise<void> {
    await this.stop();
    this.#plan = plan;
    this.start();
  }

  status(): MemberStatus {
    const { address, process, shell } = this.#plan;
    return {
      ...CONTROL_PLANE,
      workload: CONTROL_PLANE.name,
      labels: {},
      kind: "control-plane",
      address,
      ports: PORTS,
      job: false,
      state: this.#life === undefined ? "stopped" : "running",
      ready: this.ready,
      reason: this.#reason ?? "",
      app: this.#unit.status,
      proxy: undefined,
      logs: { app: process.log, proxy: undefined },
      shell,
    };
  }

  #newUnit(): Unit {
    const { address, port, path } = this.#plan.readiness;
    const ask = () => probe({ address, port, httpGet: { path, headers: {} }, timeoutMs: TIMEOUT_MS });
    const onChange = (result: ProbeResult) => this.#settle(result && `not ready: ${result}`);
    return new Unit({
      plan: this.#plan.process,
      graceMs: GRACE_MS,
      onChange: ({ state, lastExit }) => this.#settle(state === "running" ? "starting" : (lastExit ?? state)),
      beside: (signal) => watchReadiness({ ask, timing: TIMING, onChange }, signal),
    });
  }

  #settle(reason: ProbeResult): void {
    this.#reason = reason;
    this.#onChange();
  }
}
