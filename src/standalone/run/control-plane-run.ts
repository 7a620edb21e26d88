/** The life of the control plane. While it is away, proxies go on with what they have. */
import { type ProbeResult, probe, watchReadiness } from "../fabric/probe.ts";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import type { MeshPlan } from "../plan/plan.ts";
import type { MemberStatus } from "./status.ts";
import { Unit } from "./unit.ts";

const TIMING = { initialDelayMs: 0, periodMs: 2000, failureThreshold: 3, successThreshold: 1 };
const TIMEOUT_MS = 2000;
const GRACE_MS = 500;
const PORTS = [
  { name: "grpc-xds", port: 15010 },
  { name: "https-dns", port: 15012 },
  { name: "http-monitoring", port: 15014 },
];

export class ControlPlaneRun {
  readonly #plan: MeshPlan["controlPlane"];
  readonly #unit: Unit;
  #reason: ProbeResult = "not started";

  constructor(plan: MeshPlan["controlPlane"], onChange: () => void) {
    this.#plan = plan;
    const { address, port, path } = plan.readiness;
    const ask = () => probe({ address, port, httpGet: { path, headers: {} }, timeoutMs: TIMEOUT_MS });
    const settle = (reason: ProbeResult) => {
      this.#reason = reason;
      onChange();
    };
    this.#unit = new Unit({
      plan: plan.process,
      graceMs: GRACE_MS,
      onChange: ({ state, lastExit }) => settle(state === "running" ? "starting" : (lastExit ?? state)),
      beside: (signal) =>
        watchReadiness({ ask, timing: TIMING, onChange: (result) => settle(result && `not ready: ${result}`) }, signal),
    });
  }

  get ready(): boolean {
    return this.#reason === undefined;
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#unit.run(signal);
  }

  status(): MemberStatus {
    const { address, process, shell } = this.#plan;
    return {
      ...CONTROL_PLANE,
      workload: CONTROL_PLANE.name,
      kind: "control-plane",
      address,
      ports: PORTS,
      ready: this.ready,
      reason: this.#reason ?? "",
      app: this.#unit.status,
      proxy: undefined,
      logs: { app: process.log, proxy: undefined },
      shell,
    };
  }
}
