/** The keepers of places: started when they are missing, and found again by the links to their namespaces. */
import { rename, rm, stat, symlink } from "node:fs/promises";
import { MeshError } from "#lib/mesh-error.ts";
import type { Place } from "../plan/enter.ts";
import { keepCommand, SHARED_PROC } from "../plan/keep.ts";
import { namespaceFile } from "../plan/names.ts";
import { runCommand } from "./command.ts";
import { ignoring } from "./ignoring.ts";

/** What a place could not be given. */
export type PlaceLimit = "shared-proc" | undefined;

/** Makes sure that a place can be entered. Its network namespace must exist. */
export async function keepPlace(place: Place): Promise<PlaceLimit> {
  if (await isKept(place)) return undefined;
  const printed = await runCommand({ argv: keepCommand(place) });
  const pid = /^\d+$/m.exec(printed)?.[0];
  const aside = `${place.namespaces}.new`;
  await rm(aside, { force: true });
  await symlink(`/proc/${pid}/ns`, aside);
  await rename(aside, place.namespaces);
  if (!(await isKept(place))) {
    throw new MeshError("NAMESPACE_FAILED", `Cannot make process and mount namespaces for "${place.hostname}"`);
  }
  return printed.includes(SHARED_PROC) ? "shared-proc" : undefined;
}

/** Numbers of processes are used again. A process in the place's network namespace is no stranger's. */
async function isKept({ namespaces, netns }: Place): Promise<boolean> {
  const [own, kept] = await Promise.all(
    [namespaceFile(netns), `${namespaces}/net`].map((file) => ignoring(["ENOENT", "ESRCH"], () => stat(file))),
  );
  return kept !== undefined && kept.ino === own?.ino;
}
