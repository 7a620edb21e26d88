/** A workload of a mesh that is up, as a program sees it. */
import { MeshError } from "#lib/mesh-error.ts";
import { askMesh } from "../control/ask.ts";
import type { ControlRequest } from "../control/protocol.ts";
import { memberKey } from "../mesh/mesh.ts";
import { enterCommand } from "../plan/enter.ts";
import { type MemberStatus, restartsOf } from "../status/status.ts";
import type { ExecOptions, ExecResult, FetchOptions, Workload, WorkloadStatus } from "./api.ts";
import { CALL_COMMAND, fetchBy } from "./fetch-inside.ts";
import { type ProgramInput, runProgram, startProgram } from "./program.ts";

export interface RunningWorkloadInput {
  readonly name: string;
  /** State folder of the mesh. */
  readonly state: string;
  /** How `mizzen` is called. */
  readonly mizzen: readonly string[];
  /** The member as it is now. */
  readonly member: () => Promise<MemberStatus>;
}

export class RunningWorkload implements Workload {
  readonly #input: RunningWorkloadInput;

  constructor(input: RunningWorkloadInput) {
    this.#input = input;
  }

  get name(): string {
    return this.#input.name;
  }

  async fetch(url: string | URL, init: FetchOptions = {}): Promise<Response> {
    init.signal?.throwIfAborted();
    const program = startProgram(await this.#inside(CALL_COMMAND, init.signal));
    return fetchBy(program, String(url), init);
  }

  async exec(command: readonly string[], { input, env = {}, signal }: ExecOptions = {}): Promise<ExecResult> {
    signal?.throwIfAborted();
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const whole = variables.length === 0 ? command : ["env", ...variables, ...command];
    return runProgram(await this.#inside(whole, signal), input);
  }

  async logs(of: "app" | "proxy" = "app"): Promise<string> {
    const { state, mizzen } = this.#input;
    const key = memberKey(await this.#input.member());
    const proxy = of === "proxy" ? ["--proxy"] : [];
    const { code, stdout, stderr } = await runProgram({ argv: [...mizzen, "logs", "--state", state, key, ...proxy] });
    if (code !== 0) throw new MeshError("MIZZEN_FAILED", stderr.trim().replace(/^mizzen: /, ""));
    return stdout;
  }

  async status(): Promise<WorkloadStatus> {
    return workloadStatus(await this.#input.member());
  }

  restart(): Promise<void> {
    return this.#change({ kind: "restart", workload: this.name });
  }

  stop(): Promise<void> {
    return this.#change({ kind: "stop", workload: this.name });
  }

  start(): Promise<void> {
    return this.#change({ kind: "start", workload: this.name });
  }

  scale(replicas: number): Promise<void> {
    return this.#change({ kind: "scale", workload: this.name, replicas });
  }

  async #change(request: ControlRequest): Promise<void> {
    await askMesh(this.#input.state, request);
  }

  /** How a command runs inside. Without root only `mizzen` itself finds the way into the account's own machine. */
  async #inside(command: readonly string[], signal: AbortSignal | undefined): Promise<ProgramInput> {
    const { state, mizzen } = this.#input;
    const member = await this.#input.member();
    if (process.getuid?.() !== 0) {
      return { argv: [...mizzen, "exec", "--state", state, memberKey(member), "--", ...command], signal };
    }
    const { place, account, env, cwd } = member.shell;
    return { argv: enterCommand({ place, account, cwd, command }), env, signal };
  }
}

export function workloadStatus(member: MemberStatus): WorkloadStatus {
  const { name, namespace, kind, address, state, ready, reason } = member;
  return { name, namespace, kind, address, state, ready, reason, restarts: restartsOf(member) };
}
