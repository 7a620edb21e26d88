/** Options that several commands share. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { MeshError } from "#lib/mesh-error.ts";
import type { MeshChoice } from "#standalone/commands/find-mesh.ts";
import type { Terminal } from "./terminal.ts";

export interface ChoiceOptions {
  readonly mesh?: string;
  readonly state?: string;
}

/** `--mesh` and `--state`, for commands about a mesh that is up. */
export function withChoice(command: Command): Command {
  return command
    .addOption(new Option("-m, --mesh <name>", "which mesh, when several are up"))
    .addOption(new Option("--state <folder>", "which mesh, by its state folder"));
}

/** Without an option, and without a folder, MIZZEN_MESH of the environment names the mesh. */
export function nameMeshByEnvironment(command: Command, { env }: Terminal): void {
  const { mesh, state } = command.opts<ChoiceOptions>();
  const takesMesh = command.options.some((option) => option.attributeName() === "mesh");
  const isChosen = mesh !== undefined || state !== undefined || (command.name() === "down" && command.args.length > 0);
  if (takesMesh && !isChosen && env.MIZZEN_MESH) command.setOptionValueWithSource("mesh", env.MIZZEN_MESH, "env");
}

export function choiceOf({ mesh, state }: ChoiceOptions): MeshChoice {
  return { name: mesh, stateFolder: state === undefined ? undefined : resolve(state) };
}

/** Where the state of a mesh lies unless a person says otherwise. */
export function defaultStateFolder({ env }: Terminal, name: string): string {
  const home = env.XDG_STATE_HOME || (process.getuid?.() === 0 ? "/var/lib" : join(homedir(), ".local/state"));
  return join(home, "mizzen", name);
}

/** The state of a mesh is root's, like its processes. */
export function needRoot(what: string): void {
  if (process.getuid?.() === 0) return;
  throw new MeshError("NOT_ROOT", `Cannot ${what} without root: the mesh belongs to root; run it with sudo`);
}

/** Reads the value of a flag for a time. */
export function seconds(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("It must be a whole number of seconds.");
  return value;
}
