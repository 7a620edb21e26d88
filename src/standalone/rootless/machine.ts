/**
 * A machine of one's own for an account that is not root: a user namespace in which it is root, with a mount namespace
 * whose /run belongs to it. All meshes of the account live there, side by side as root's do on the real machine. Its
 * network is the real one: published ports are opened there, the meshes are in network namespaces below it.
 *
 * It exists for as long as a process is in it. A file in the account's state folder says which one it is.
 */
import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { bootId } from "#lib/process-id.ts";
import { runCommand } from "../host/command.ts";
import { ignoring } from "../host/ignoring.ts";
import { endProcesses } from "../host/processes.ts";
import { writeAtomically } from "../host/write-files.ts";

/** The names that the kernel gives to its namespaces, such as `mnt:[4026532177]`; they may come again after a reboot. */
export interface Machine {
  readonly user: string;
  readonly mount: string;
  readonly bootId: string;
}

const RECORD = ".machine.json";

/** The machine that a process is in; undefined when it has ended. */
export async function machineOf(pid: number): Promise<Machine | undefined> {
  const [user, mount] = await Promise.all([namespaceOf(pid, "user"), namespaceOf(pid, "mnt")]);
  return user === undefined || mount === undefined ? undefined : { user, mount, bootId: await bootId() };
}

/** The machine that was last made for the state folder, of this start of the real one; it may be gone. */
export async function readMachine(folder: string): Promise<Machine | undefined> {
  const text = await ignoring(["ENOENT"], () => readFile(join(folder, RECORD), "utf8"));
  const machine = text === undefined ? undefined : parseMachine(text);
  return machine?.bootId === (await bootId()) ? machine : undefined;
}

function parseMachine(text: string): Machine | undefined {
  try {
    return JSON.parse(text);
  } catch {
    // Not written by us, or on a disk that was full: as good as none.
    return undefined;
  }
}

export async function recordMachine(folder: string, machine: Machine): Promise<void> {
  const path = join(folder, RECORD);
  await writeAtomically({ path, text: JSON.stringify(machine), mode: 0o600, owner: process.getuid?.() ?? 0 });
}

/** A process by which the machine can be entered; undefined when it is gone. */
export async function findDoor({ user, mount }: Machine): Promise<number | undefined> {
  for (const pid of await processIds()) {
    if ((await namespaceOf(pid, "mnt")) === mount && (await namespaceOf(pid, "user")) === user) return pid;
  }
  return undefined;
}

/** Ends what is left of a machine whose mounts are gone, as after its runner was killed: nobody can enter it any more. */
export async function endSurvivors(machine: Machine): Promise<void> {
  const users = await withNested(machine.user);
  await endProcesses(async () => {
    const pids = await processIds();
    const found = await Promise.all(pids.map(async (pid) => ({ pid, user: await namespaceOf(pid, "user") })));
    return found.filter(({ user }) => user !== undefined && users.has(user)).map(({ pid }) => pid);
  }, 0);
}

/** The user namespace with those that were made in it, where there is a program that tells. */
async function withNested(user: string): Promise<ReadonlySet<string>> {
  const listed = await runCommand({ argv: ["lsns", "--noheadings", "--raw", "-t", "user", "-o", "NS,PNS"] }).catch(
    () => "",
  );
  const nested = listed
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, parent]) => `user:[${parent}]` === user)
    .map(([namespace]) => `user:[${namespace}]`);
  return new Set([user, ...nested]);
}

async function processIds(): Promise<number[]> {
  return (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
}

/** Undefined also for processes that are none of our business. */
function namespaceOf(pid: number, kind: "user" | "mnt"): Promise<string | undefined> {
  return readlink(`/proc/${pid}/ns/${kind}`).catch(() => undefined);
}
