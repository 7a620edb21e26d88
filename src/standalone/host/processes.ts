/** The processes of the machine, as far as the kernel tells: /proc. */
import { readdir, readFile, readlink } from "node:fs/promises";
import { sleep } from "#lib/async/sleep.ts";
import { MeshError } from "#lib/mesh-error.ts";

/** Numbers of the processes in any of the network namespaces, given by inode; never our own. */
async function processesIn(inodes: ReadonlySet<bigint>): Promise<number[]> {
  const names = new Set([...inodes].map((inode) => `net:[${inode}]`));
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const namespace = await readlink(`/proc/${pid}/ns/net`).catch(() => "");
      return names.has(namespace) && pid !== process.pid ? [pid] : [];
    }),
  );
  return found.flat();
}

const POLL_MS = 20;
/**
 * So often only keepers are killed: the kernel ends the rest of their places, and whoever entered a place waits for its
 * process and then ends, too. A process whose parent was killed before would be left for the machine's init to bury.
 */
const KEEPER_ROUNDS = 10;
/** How long the kernel may take to end a process that has to end. */
const UNKILLABLE_MS = 15_000;

/** Ends all processes in the namespaces: asks first, then insists until none is left. */
export function endProcessesIn(inodes: ReadonlySet<bigint>, graceMs: number): Promise<void> {
  return endProcesses(() => processesIn(inodes), graceMs);
}

/** Ends all processes that are found, also those that appear meanwhile. */
export async function endProcesses(find: () => Promise<readonly number[]>, graceMs: number): Promise<void> {
  const deadline = Date.now() + graceMs;
  const asked = new Set<number>();
  const never = new AbortController().signal;
  let keeperRounds = KEEPER_ROUNDS;
  for (;;) {
    const pids = await find();
    if (pids.length === 0) return;
    if (Date.now() > deadline + UNKILLABLE_MS) {
      throw new MeshError("PROCESS_LEFT", `Cannot end process ${pids.join(", ")}: still there after SIGKILL`);
    }
    const keepers = await keepersOf(pids);
    const insist = keepers.length === pids.length || Date.now() >= deadline;
    if (insist) {
      const victims = keepers.length > 0 && keeperRounds-- > 0 ? keepers : pids;
      for (const pid of victims) signalProcess(pid, "SIGKILL");
    } else {
      for (const pid of pids.filter((one) => !asked.has(one))) signalProcess(pid, "SIGTERM");
    }
    for (const pid of pids) asked.add(pid);
    await sleep(POLL_MS, never);
  }
}

/** The first processes of namespaces below ours: they take no signal but SIGKILL, and all others there end with them. */
async function keepersOf(pids: readonly number[]): Promise<readonly number[]> {
  const found = await Promise.all(
    pids.map(async (pid) => {
      const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
      return /^NSpid:\t\d+\t1$/m.test(status) ? [pid] : [];
    }),
  );
  return found.flat();
}

/** The process inside of a place that this one entered (`plan/enter.ts`); undefined when it is not there yet, or no more. */
export async function insidePid(pid: number): Promise<number | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return children === "" ? undefined : Number(children.split(" ")[0]);
}

/** Sends a signal; a negative number means a whole process group. That it is gone already is no error. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
