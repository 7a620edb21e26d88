/** Control groups of the machine: found, made, removed. */
import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { sleep } from "#lib/async/sleep.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { CONTROLLERS, type Controller, type GroupLayout, type GroupPlan, groupFolder } from "../plan/control-groups.ts";
import { ignoring } from "./ignoring.ts";
import { signalProcess } from "./processes.ts";

/** Which controllers the machine has, and where. The first kind wins where it is mounted: a controller is only in one. */
export async function findLayout(): Promise<GroupLayout> {
  return layoutOf(await mounts(), async (mount) => {
    return (await ignoring(["ENOENT"], () => readFile(join(mount, "cgroup.controllers"), "utf8"))) ?? "";
  });
}

export interface GroupMount {
  readonly folder: string;
  readonly type: string;
  readonly options: readonly string[];
}

/** The layout of these mounts; `controllers` tells what the second kind has. */
export async function layoutOf(
  all: readonly GroupMount[],
  controllers: (mount: string) => Promise<string>,
): Promise<GroupLayout> {
  const first = all.filter(({ type }) => type === "cgroup");
  const found: Partial<Record<Controller, string>> = {};
  for (const controller of CONTROLLERS) {
    const mount = first.find(({ options }) => options.includes(controller));
    if (mount !== undefined) found[controller] = mount.folder;
  }
  if (Object.keys(found).length > 0) return { version: 1, mounts: found };
  for (const { folder } of all.filter(({ type }) => type === "cgroup2")) {
    const names = (await controllers(folder)).trim().split(" ");
    for (const controller of CONTROLLERS) if (names.includes(controller)) found[controller] = folder;
  }
  return { version: 2, mounts: found };
}

async function mounts(): Promise<readonly GroupMount[]> {
  const lines = (await readFile("/proc/self/mounts", "utf8")).split("\n").map((line) => line.split(" "));
  return lines
    .filter(([, , type]) => type === "cgroup" || type === "cgroup2")
    .map(([, folder = "", type = "", options = ""]) => ({ folder, type, options: options.split(",") }));
}

/** Makes groups, or changes their settings. */
export async function makeGroups(groups: readonly GroupPlan[]): Promise<void> {
  for (const { folder, settings, version } of groups) {
    try {
      await mkdir(folder, { recursive: true });
      if (version === 2) await handDown(folder, Object.keys(settings));
      for (const [name, value] of Object.entries(settings)) await setting(join(folder, name), value);
    } catch (cause) {
      throw new MeshError(
        "LIMITS_UNAVAILABLE",
        `Cannot limit an app: the control group "${folder}" cannot be set up (${errorText(cause)}); leave out limits, or run on a machine whose control groups may be written`,
      );
    }
  }
}

/** In the second kind a group has a controller only when those above it hand it down. */
async function handDown(folder: string, settings: readonly string[]): Promise<void> {
  const wanted = CONTROLLERS.filter((controller) => settings.some((name) => name.startsWith(`${controller}.`)));
  const mesh = dirname(folder);
  for (const above of [dirname(mesh), mesh]) {
    await writeFile(join(above, "cgroup.subtree_control"), wanted.map((controller) => `+${controller}`).join(" "));
  }
}

/** A machine without swap has no setting for it. */
async function setting(file: string, value: string): Promise<void> {
  if (file.endsWith(".swap.max")) await ignoring(["ENOENT"], () => writeFile(file, value, { flag: "r+" }));
  else await writeFile(file, value);
}

/** Where each kind of control group counts the processes that the kernel ended because the group had no memory left. */
const OUT_OF_MEMORY = { 1: "memory.oom_control", 2: "memory.events" } as const;

/** How often that happened in these groups. */
export async function outOfMemoryKills(groups: readonly GroupPlan[]): Promise<number> {
  const counts = await Promise.all(
    groups.map(async ({ folder, version }) => {
      const text = await ignoring(["ENOENT"], () => readFile(join(folder, OUT_OF_MEMORY[version]), "utf8"));
      return Number(/^oom_kill (\d+)$/m.exec(text ?? "")?.[1] ?? 0);
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Removes the group of one app. */
export async function removeGroups(groups: readonly GroupPlan[]): Promise<void> {
  for (const { folder } of groups) {
    await removeGroup(folder);
    // With the last one goes the folder of the mesh.
    await ignoring(["ENOENT", "EBUSY", "ENOTEMPTY"], () => rmdir(dirname(folder)));
  }
}

/** Removes all groups of a mesh, wherever they are, and ends what is still in them. */
export async function removeGroupsOf(id: string): Promise<void> {
  for (const { folder } of await mounts()) {
    const mesh = join(folder, groupFolder(id));
    const names = await ignoring(["ENOENT"], () => readdir(mesh, { withFileTypes: true }));
    for (const entry of names ?? []) if (entry.isDirectory()) await removeGroup(join(mesh, entry.name));
    if (names !== undefined) await ignoring(["ENOENT"], () => rmdir(mesh));
  }
}

const POLL_MS = 10;
const PATIENCE = 500;

/** A group goes when its last process has been forgotten by the kernel. */
async function removeGroup(folder: string): Promise<void> {
  const never = new AbortController().signal;
  for (let attempt = 0; attempt < PATIENCE; attempt++) {
    const gone = await ignoring(["EBUSY"], () => ignoring(["ENOENT"], () => rmdir(folder)).then(() => true));
    if (gone === true) return;
    const pids = (await ignoring(["ENOENT"], () => readFile(join(folder, "cgroup.procs"), "utf8"))) ?? "";
    for (const pid of pids.split("\n").filter((line) => line !== "")) signalProcess(Number(pid), "SIGKILL");
    await sleep(POLL_MS, never);
  }
  throw new MeshError("PROCESS_LEFT", `Cannot remove the control group "${folder}": a process in it does not end`);
}
