/** Users and groups by name. Rules may name them; packets only know numbers. */
import { readFile } from "node:fs/promises";
import type { CaptureSettings } from "./settings.ts";

export interface Accounts {
  readonly users: ReadonlyMap<string, string>;
  readonly groups: ReadonlyMap<string, string>;
}

/** Reads /etc/passwd and /etc/group under `root`; a machine without them has no accounts. */
export async function readAccounts(root = ""): Promise<Accounts> {
  const read = (name: string) => readFile(`${root}/etc/${name}`, "utf8").catch(() => "");
  const [users, groups] = await Promise.all([read("passwd"), read("group")]);
  return { users: idsByName(users), groups: idsByName(groups) };
}

/** The same settings with numbers in place of names that are known; iptables does the same when it takes a rule. */
export function withNumericIds(settings: CaptureSettings, { users, groups }: Accounts): CaptureSettings {
  const gids = (names: readonly string[]) => names.map((name) => groups.get(name) ?? name);
  return {
    ...settings,
    proxyUids: settings.proxyUids.map((name) => users.get(name) ?? name),
    proxyGids: gids(settings.proxyGids),
    ownerGroups: { ...settings.ownerGroups, groups: gids(settings.ownerGroups.groups) },
  };
}

/** Lines of `name:password:id:...`. */
function idsByName(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split("\n").flatMap((line) => {
      const [name = "", , id = ""] = line.split(":");
      return id === "" ? [] : [[name, id] as const];
    }),
  );
}
