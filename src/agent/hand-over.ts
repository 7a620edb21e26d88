import { chown, stat } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";

/**
 * Gives files to another user, with the folders above them that are private to the agent, up to a folder that is not
 * touched. Files that do not exist are left out.
 */
export async function handOver(
  paths: readonly string[],
  to: { readonly user: number; readonly below: string },
): Promise<void> {
  const below = resolve(to.below);
  for (const path of paths) {
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    await chown(path, to.user, to.user);
    for (const folder of foldersBetween(below, dirname(resolve(path)))) {
      const { mode, uid } = await stat(folder);
      if ((mode & 0o077) === 0 && uid === process.getuid?.()) await chown(folder, to.user, to.user);
    }
  }
}

function foldersBetween(top: string, bottom: string): string[] {
  const way = relative(top, bottom);
  if (way === "" || way.startsWith("..")) return [];
  const names = way.split("/");
  return names.map((_, index) => join(top, ...names.slice(0, index + 1)));
}
