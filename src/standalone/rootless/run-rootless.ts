/** Runs `mizzen` once more on the machine of an account that is not root; there it finds itself to be root. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { MeshError } from "#lib/mesh-error.ts";
import { startForeground } from "../host/foreground.ts";
import { endSurvivors, findDoor, machineOf, readMachine, recordMachine } from "./machine.ts";
import {
  type AccountsInput,
  enterArgv,
  type MadeMachine,
  makeMachine,
  manyAccounts,
  type Person,
} from "./make-machine.ts";

export interface RootlessInput {
  readonly person: Person;
  /** Where the account's meshes keep their state unless told otherwise; it may have to be made. */
  readonly folder: string;
  /** What to run. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The command starts or removes a mesh: it may take the place of a machine that was lost. */
  readonly changes: boolean;
  readonly hasProgram: AccountsInput["hasProgram"];
  /** Told when a machine is made: whether there are other accounts than one's own. */
  readonly onMade: (accounts: "many" | "one") => void;
}

/** Says that it has come through the door, then becomes the command. It must not outlive whoever waits for it. */
const COME_IN = `echo in >&3
exec 3>&-
cd "$1" || exit 1
shift
exec "$@"`;
const ATTEMPTS = 5;

/** Runs the command to its end and answers with its exit code. */
export async function runRootless(input: RootlessInput): Promise<number> {
  await mkdir(input.folder, { recursive: true });
  for (let attempt = 1; ; attempt++) {
    const inside = await tryToEnter(input);
    if (inside !== undefined) return inside.ended;
    // The machine went down with its last mesh while we were at its door.
    if (attempt === ATTEMPTS) throw new MeshError("NAMESPACE_FAILED", "Cannot enter the user namespace of your meshes");
  }
}

/** Undefined when the door was shut meanwhile. */
async function tryToEnter(input: RootlessInput): Promise<{ readonly ended: Promise<number> } | undefined> {
  const lock = await takeLock(join(input.folder, ".lock"));
  const machine = await openMachine(input).catch((error: unknown) => {
    lock.release();
    throw error;
  });
  try {
    const { child, ended } = startForeground({
      argv: [
        ...enterArgv(machine.door),
        ...["setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", COME_IN, "sh", input.cwd],
        ...input.command,
      ],
      env: input.env,
      more: ["pipe"],
    });
    const entered = await Promise.race([once(pipeOf(child), "data").then(() => true), ended.then(() => false)]);
    return entered ? { ended } : undefined;
  } catch (cause) {
    throw new MeshError("NAMESPACE_FAILED", "Cannot enter the user namespace of your meshes", { cause });
  } finally {
    machine.release();
    lock.release();
  }
}

function pipeOf({ stdio }: ChildProcess): Readable | Writable {
  const pipe = stdio[3];
  if (pipe === undefined || pipe === null) throw new Error("a pipe was asked for");
  return pipe;
}

/** The machine that is there, or a new one. */
async function openMachine(input: RootlessInput): Promise<MadeMachine> {
  const { person, folder, changes, hasProgram, onMade } = input;
  const known = await readMachine(folder);
  const door = known && (await findDoor(known));
  if (door !== undefined) return { door, release: () => undefined };
  if (known !== undefined && changes) await endSurvivors(known);
  const many = await manyAccounts({ person, folder, hasProgram });
  const made = await makeMachine(person, many);
  const machine = await machineOf(made.door);
  if (changes && machine !== undefined) await recordMachine(folder, machine);
  onMade(many === undefined ? "one" : "many");
  return made;
}

/** Two that come at the same moment must not make two machines. The kernel gives the lock back whatever happens to us. */
async function takeLock(file: string): Promise<{ release(): void }> {
  const holder = spawn("flock", [file, "sh", "-c", "echo; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
  holder.stdin.on("error", () => undefined);
  const lost = once(holder, "exit").then(() => {
    throw new MeshError("STATE_UNWRITABLE", `Cannot lock "${file}"`);
  });
  await Promise.race([once(holder.stdout, "data"), lost]);
  return { release: () => holder.stdin.end() };
}
