/** A mesh that is up, as a program sees it. */
import { rm } from "node:fs/promises";
import { MeshError } from "#lib/mesh-error.ts";
import { applyConfig, type ConfigText, deleteConfig } from "../commands/apply.ts";
import { findMember } from "../commands/find-mesh.ts";
import { publishedUrl } from "../commands/open.ts";
import { statePaths } from "../plan/state-paths.ts";
import { type MeshStatus, readStatus } from "../status/status.ts";
import type { Mesh, Workload, WorkloadStatus } from "./api.ts";
import { type Program, runProgram } from "./program.ts";
import { RunningWorkload, workloadStatus } from "./running-workload.ts";

export interface RunningMeshInput {
  readonly name: string;
  readonly state: string;
  /** The mesh file. */
  readonly file: string;
  /** How `mizzen` is called. */
  readonly mizzen: readonly string[];
  /** The command that the mesh lives as long as; undefined when it was there before us. */
  readonly owner: Program | undefined;
  /** The state folder goes with the mesh. */
  readonly temporary: boolean;
}

type Config = string | object | readonly object[];

export class RunningMesh implements Mesh {
  readonly #input: RunningMeshInput;
  #stopped: Promise<void> | undefined;

  constructor(input: RunningMeshInput) {
    this.#input = input;
  }

  get name(): string {
    return this.#input.name;
  }

  get state(): string {
    return this.#input.state;
  }

  workload(name: string): Workload {
    const { state, mizzen } = this.#input;
    return new RunningWorkload({ name, state, mizzen, member: async () => findMember(await this.#status(), name) });
  }

  async workloads(): Promise<readonly WorkloadStatus[]> {
    return (await this.#status()).members.map(workloadStatus);
  }

  async url(workload?: string): Promise<string> {
    return new URL(publishedUrl(await this.#status(), workload)).origin;
  }

  apply(config: Config): Promise<readonly string[]> {
    return applyConfig(this.state, [configText(config)]);
  }

  delete(config: Config): Promise<readonly string[]> {
    return deleteConfig(this.state, [configText(config)]);
  }

  async reload(): Promise<void> {
    const { file, name, state } = this.#input;
    await this.#mizzen(["up", file, "--detach", "--free-ports", "--name", name, "--state", state]);
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#end();
    return this.#stopped;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #end(): Promise<void> {
    const { owner, state, temporary } = this.#input;
    owner?.child.stdin.end();
    // One that was lost leaves things behind, which `down` finds.
    if (owner === undefined || (await owner.ended) !== 0) {
      await this.#mizzen(["down", "--state", state]);
    }
    if (temporary) await rm(state, { recursive: true, force: true });
  }

  async #mizzen(args: readonly string[]): Promise<void> {
    const result = await runProgram({ argv: [...this.#input.mizzen, ...args] });
    if (result.code === 0) return;
    throw new MeshError("MIZZEN_FAILED", result.stderr.trim().replace(/^mizzen: /m, ""));
  }

  async #status(): Promise<MeshStatus> {
    const status = await readStatus(statePaths(this.state).status);
    if (status === undefined) throw new MeshError("MESH_NOT_UP", `Mesh "${this.name}" is not up any more`);
    return status;
  }
}

/** Each object is a document; JSON is YAML. */
function configText(config: Config): ConfigText {
  if (typeof config === "string") return { file: "config", text: config };
  const objects: readonly object[] = Array.isArray(config) ? config : [config];
  return { file: "config", text: objects.map((object) => JSON.stringify(object, undefined, 2)).join("\n---\n") };
}
