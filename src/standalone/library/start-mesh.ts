/**
 * Starts and finds meshes for programs. The mesh is a child: `mizzen up` with a pipe for its input, which ends when this
 * process does, and with it the mesh. So it makes no difference whether we are root, and nothing is left behind when a
 * test is killed.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { MeshError } from "#lib/mesh-error.ts";
import { statePaths } from "../plan/state-paths.ts";
import { type MeshStatus, readStatus } from "../status/status.ts";
import type { Mesh, StartMeshOptions } from "./api.ts";
import { type Program, startProgram } from "./program.ts";
import { RunningMesh } from "./running-mesh.ts";

/** What `mizzen up --as-child` says about the start of its mesh: one line of JSON. */
export type ChildReply =
  | { readonly kind: "ready"; readonly status: MeshStatus }
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

export interface StartInput extends StartMeshOptions {
  readonly folder: string;
  /** How `mizzen` is called. */
  readonly mizzen: readonly string[];
}

/** Starts the mesh of a folder; resolves when it is ready. */
export async function startMeshBy(input: StartInput): Promise<Mesh> {
  const { folder, mizzen, name = `mesh-${randomBytes(4).toString("hex")}` } = input;
  const temporary = input.state === undefined;
  const state = input.state === undefined ? await mkdtemp(join(tmpdir(), "mizzen-")) : resolve(input.state);
  const timeoutSeconds = Math.max(1, Math.ceil((input.timeoutMs ?? 120_000) / 1000));
  const flags = [
    ...["--as-child", "--name", name, "--state", state, "--timeout", String(timeoutSeconds)],
    ...(input.fixedPorts === true ? [] : ["--free-ports"]),
    ...(input.egress === true ? ["--egress"] : []),
  ];
  const owner = startProgram({ argv: [...mizzen, "up", resolve(folder), ...flags] });
  try {
    const status = await untilReady(owner, input.onProgress);
    return new RunningMesh({ name, state: status.stateFolder, file: status.file, mizzen, owner, temporary });
  } catch (error) {
    owner.child.stdin.end();
    await owner.ended.catch(() => undefined);
    if (temporary) await rm(state, { recursive: true, force: true });
    throw error;
  }
}

/** The mesh that is up with its state in this folder. */
export async function openMeshBy(mizzen: readonly string[], state: string): Promise<Mesh> {
  const status = await readStatus(statePaths(resolve(state)).status);
  if (status === undefined) throw new MeshError("MESH_NOT_UP", `No mesh is up in "${state}"`);
  const { name, stateFolder, file } = status;
  return new RunningMesh({ name, state: stateFolder, file, mizzen, owner: undefined, temporary: false });
}

async function untilReady({ child, ended }: Program, onProgress?: (line: string) => void): Promise<MeshStatus> {
  const words: string[] = [];
  createInterface(child.stderr).on("line", (line) => {
    words.push(line);
    onProgress?.(line);
  });
  const reply = new Promise<ChildReply>((resolve) => {
    createInterface(child.stdout).once("line", (line) => resolve(JSON.parse(line)));
  });
  const lost = ended.then((code) => {
    throw new MeshError("START_FAILED", `mizzen up ended with code ${code}: ${words.slice(-5).join("\n")}`);
  });
  const answer = await Promise.race([reply, lost]);
  if (answer.kind === "failed") throw new MeshError(answer.code, answer.message);
  // It goes on saying things that nobody waits for.
  lost.catch(() => undefined);
  return answer.status;
}
