/** Who a process is, beyond a number that another may have tomorrow; as Linux tells it. */
import { readFile } from "node:fs/promises";

/** A process that cannot be mistaken for a later one with the same number. */
export interface ProcessId {
  readonly pid: number;
  /** In clock ticks since the machine started. */
  readonly startTime: string;
  /** Which start of the machine. */
  readonly bootId: string;
}

/** The process of this number as it is now; undefined when there is none. */
export async function identify(pid: number): Promise<ProcessId | undefined> {
  const startTime = await startTimeOf(pid);
  return startTime === undefined ? undefined : { pid, startTime, bootId: await bootId() };
}

/** Whether it still runs. */
export async function isAlive(process: ProcessId): Promise<boolean> {
  return process.bootId === (await bootId()) && process.startTime === (await startTimeOf(process.pid));
}

/** Which start of the machine this is. */
export async function bootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
}

async function startTimeOf(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    // The name, in brackets, may hold anything.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" ? undefined : fields[18];
  } catch {
    // A process may end at any moment.
    return undefined;
  }
}
