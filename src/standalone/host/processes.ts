/** The processes of the machine, as far as the kernel tells: /proc. */
import { readdir, readlink } from "node:fs/promises";
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
  for (;;) {
    const pids = await find();
    if (pids.length === 0) return;
    if (Date.now() > deadline + UNKILLABLE_MS) {
      throw new MeshError("PROCESS_LEFT", `Cannot end process ${pids.join(", ")}: still there after SIGKILL`);
    }
    const insist = Date.now() >= deadline;
    for (const pid of pids) {
      if (insist) signalProcess(pid, "SIGKILL");
      else if (!asked.has(pid)) signalProcess(pid, "SIGTERM");
      asked.add(pid);
    }
    await sleep(20, never);
  }
}

/** Sends a signal; a negative number means a whole process group. That it is gone already is no error. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
