/** Limits of apps as control groups, of the kernel's first or second kind. */
import { join } from "node:path";
import type { Limits } from "../mesh/mesh.ts";

export const CONTROLLERS = ["memory", "cpu", "pids"] as const;
export type Controller = (typeof CONTROLLERS)[number];

/** Where the machine has its control groups: one hierarchy for each controller, or one for all. */
export interface GroupLayout {
  readonly version: 1 | 2;
  readonly mounts: Readonly<Partial<Record<Controller, string>>>;
}

/** One group with its settings, by file name. */
export interface GroupPlan {
  readonly version: GroupLayout["version"];
  readonly folder: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** Length of the time slice of which an app gets its share. */
const PERIOD_US = 100_000;

/** Name of the folder that holds the groups of a mesh, in each hierarchy. */
export function groupFolder(id: string): string {
  return `mizzen-${id}`;
}

/** Which controllers are needed for limits. */
export function controllersOf({ memoryBytes, cpuMillis, pids }: Limits): readonly Controller[] {
  const wanted = { memory: memoryBytes, cpu: cpuMillis, pids };
  return CONTROLLERS.filter((controller) => wanted[controller] !== undefined);
}

export interface GroupInput {
  readonly layout: GroupLayout;
  readonly id: string;
  /** `name.namespace` */
  readonly key: string;
  readonly limits: Limits;
}

/** The groups of an app; none when it has no limits. */
export function planGroups({ layout, id, key, limits }: GroupInput): readonly GroupPlan[] {
  const groups = new Map<string, Record<string, string>>();
  for (const controller of controllersOf(limits)) {
    const mount = layout.mounts[controller];
    if (mount === undefined) throw new Error(`no control groups for ${controller}`);
    const folder = join(mount, groupFolder(id), key);
    groups.set(folder, { ...groups.get(folder), ...SETTINGS[layout.version][controller](limits) });
  }
  return [...groups].map(([folder, settings]) => ({ version: layout.version, folder, settings }));
}

type Settings = (limits: Limits) => Record<string, string>;

const SETTINGS: Readonly<Record<1 | 2, Readonly<Record<Controller, Settings>>>> = {
  1: {
    memory: ({ memoryBytes }) => ({ "memory.limit_in_bytes": String(memoryBytes) }),
    cpu: ({ cpuMillis }) => ({ "cpu.cfs_period_us": String(PERIOD_US), "cpu.cfs_quota_us": quota(cpuMillis) }),
    pids: ({ pids }) => ({ "pids.max": String(pids) }),
  },
  2: {
    // What an app may not have in memory it must not have on the swap either.
    memory: ({ memoryBytes }) => ({ "memory.max": String(memoryBytes), "memory.swap.max": "0" }),
    cpu: ({ cpuMillis }) => ({ "cpu.max": `${quota(cpuMillis)} ${PERIOD_US}` }),
    pids: ({ pids }) => ({ "pids.max": String(pids) }),
  },
};

function quota(cpuMillis = 0): string {
  return String((cpuMillis * PERIOD_US) / 1000);
}

const JOIN = `while [ "$1" != -- ]; do
  echo $$ > "$1" || exit 126
  shift
done
shift
exec "$@"`;

/** A command line that enters the groups before anything else, so that nothing of the app is outside of them. */
export function joinGroups(groups: readonly GroupPlan[], argv: readonly string[]): readonly string[] {
  if (groups.length === 0) return argv;
  const files = groups.map(({ folder }) => join(folder, "cgroup.procs"));
  return ["sh", "-c", JOIN, "sh", ...files, "--", ...argv];
}
