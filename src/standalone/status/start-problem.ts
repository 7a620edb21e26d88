/** Why a mesh will not become ready, as one line for the person who waits. */
import { readFile } from "node:fs/promises";
import { workloadKey } from "../mesh/mesh.ts";
import type { UnitStatus } from "../supervise/unit.ts";
import { blockedWorkloads, type JobMember } from "./jobs.ts";
import type { MemberStatus } from "./status.ts";

/** A process that ends this often before it was up for a while will not come up by itself. */
const HOPELESS_EXITS = 3;

/** Undefined as long as there is hope. */
export async function startProblem(
  members: readonly MemberStatus[],
  jobs: readonly JobMember[],
  timedOut: boolean,
): Promise<string | undefined> {
  const blocked = blockedWorkloads(jobs);
  for (const member of members) {
    if (member.state !== "running") continue;
    if (blocked.has(workloadKey(member))) {
      const failed = jobs.find(({ status }) => status.state === "failed");
      const said = failed && (await lastLine(failed.status.logs?.app));
      return `workload "${member.name}" cannot be started: it ${member.reason}${said}`;
    }
    for (const [unit, log, what] of [
      [member.app, member.logs.app, member.kind === "control-plane" ? "control plane" : `workload "${member.name}"`],
      [member.proxy, member.logs.proxy, `proxy of "${member.name}"`],
    ] as const) {
      if (!member.job && isHopeless(unit))
        return `${what} ${unit.lastExit}, ${unit.quickExits} times in a row${await lastLine(log)}`;
    }
  }
  if (!timedOut) return undefined;
  const late = members
    .filter(({ ready, state }) => !ready && state === "running")
    .map(({ name, reason }) => `${name} (${reason})`);
  return `not ready in time: ${late.join(", ")}`;
}

function isHopeless(unit: UnitStatus | undefined): unit is UnitStatus {
  return (unit?.quickExits ?? 0) >= HOPELESS_EXITS;
}

/** What Node.js prints after an error that nobody caught: places in the program, details of the error, its own version. */
const AFTER_THE_ERROR = /^(\s|[{}]|Node\.js v|Emitted 'error' event|$)/;

/** The last words of a process, which most often say why it ended. */
async function lastLine(log: string | undefined): Promise<string> {
  const text = log === undefined ? "" : await readFile(log, "utf8").catch(() => "");
  const last = text.split("\n").findLast((line) => !AFTER_THE_ERROR.test(line)) ?? text.trim();
  return last === "" ? "" : `; it said: ${last.trim().slice(0, 300)}`;
}
