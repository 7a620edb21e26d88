/** Makes a machine for an account that is not root. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { runCommand } from "../host/command.ts";
import { ANYBODY, EXECUTE, obstacle } from "../host/readable.ts";
import { refusal } from "./refusal.ts";
import { type IdRange, idMap, type Owner, subordinateIds } from "./subordinate-ids.ts";

export interface Person extends Owner {
  readonly gid: number;
}

/** A machine that is kept alive by a process of its own until it is let go. */
export interface MadeMachine {
  readonly door: number;
  release(): void;
}

/** Accounts beside one's own, when there are some that can be used. */
export interface ManyAccounts {
  readonly users: IdRange;
  readonly groups: IdRange;
}

/** Lives until its input ends. */
const HOLD = "echo made; exec cat >/dev/null";

/**
 * What others put into /run stays in sight (a resolv.conf may be a link to it), but for what each machine has for itself.
 * The old folder is put aside on /tmp for the moment: that one is there everywhere.
 */
const FURNISH = `set -e
mount -t tmpfs -o mode=755 tmpfs /tmp
mkdir /tmp/run
mount --rbind /run /tmp/run
mount -t tmpfs -o mode=755 tmpfs /run
for entry in /tmp/run/*; do
  name=\${entry##*/}
  case $name in netns | mizzen | mount | xtables.lock) continue ;; esac
  if [ -L "$entry" ]; then
    cp -P "$entry" "/run/$name"
  elif [ -d "$entry" ]; then
    mkdir "/run/$name"
    mount --rbind "$entry" "/run/$name" 2>/dev/null || true
  elif [ -e "$entry" ]; then
    : > "/run/$name"
    mount --bind "$entry" "/run/$name" 2>/dev/null || true
  fi
done
umount --lazy /tmp
mkdir /run/netns
mount --bind /run/netns /run/netns
mount --make-shared /run/netns`;

/** Makes an empty machine; its mounts and names are gone with its last process. */
export async function makeMachine(person: Person, many: ManyAccounts | undefined): Promise<MadeMachine> {
  const holder = spawn("unshare", ["--user", "--mount", "--propagation", "private", "--", "sh", "-c", HOLD], {
    stdio: ["pipe", "pipe", "pipe"],
    cwd: "/",
  });
  holder.stdin.on("error", () => undefined);
  try {
    await untilMade(holder);
    const pid = holder.pid ?? 0;
    await (many === undefined ? mapOne(pid, person) : mapMany(pid, person, many));
    await runCommand({ argv: [...enterArgv(pid), "sh", "-c", FURNISH] });
    return { door: pid, release: () => holder.stdin.end() };
  } catch (cause) {
    holder.kill("SIGKILL");
    throw await refusal(cause);
  }
}

/** Goes through the door, as the account that is root inside. */
export function enterArgv(door: number): readonly string[] {
  return ["nsenter", `--target=${door}`, "--user", "--mount", "--preserve-credentials", "--"];
}

async function untilMade(holder: ChildProcess): Promise<void> {
  const { stdout, stderr } = holder;
  if (stdout === null || stderr === null) throw new Error("a pipe was asked for");
  const words = text(stderr);
  const failed = once(holder, "exit").then(async () => {
    throw new Error((await words).trim());
  });
  await Promise.race([once(stdout, "data"), failed]);
}

/** Without help the kernel lets an account map itself, and nobody else. */
async function mapOne(pid: number, { uid, gid }: Person): Promise<void> {
  await writeFile(`/proc/${pid}/setgroups`, "deny");
  await writeFile(`/proc/${pid}/uid_map`, `0 ${uid} 1\n`);
  await writeFile(`/proc/${pid}/gid_map`, `0 ${gid} 1\n`);
}

async function mapMany(pid: number, { uid, gid }: Person, { users, groups }: ManyAccounts): Promise<void> {
  await runCommand({ argv: ["newuidmap", String(pid), ...idMap(uid, users)] });
  await runCommand({ argv: ["newgidmap", String(pid), ...idMap(gid, groups)] });
}

export interface AccountsInput {
  readonly person: Person;
  /** Where the account's meshes keep their state. */
  readonly folder: string;
  readonly hasProgram: (name: string) => Promise<boolean>;
  readonly etc?: string;
}

/**
 * The accounts that an administrator gave to this one, when they can be used: with the programs that map them, and with a
 * state folder that they may enter. A home that is closed to others is as common as a machine without such accounts.
 */
export async function manyAccounts(input: AccountsInput): Promise<ManyAccounts | undefined> {
  const { person, folder, hasProgram, etc = "/etc" } = input;
  const [users, groups] = await Promise.all(
    ["subuid", "subgid"].map(async (name) =>
      subordinateIds(await readFile(`${etc}/${name}`, "utf8").catch(() => ""), person),
    ),
  );
  if (users === undefined || groups === undefined) return undefined;
  const programs = await Promise.all(["newuidmap", "newgidmap"].map(hasProgram));
  if (programs.includes(false) || (await obstacle(folder, ANYBODY, EXECUTE)) !== undefined) return undefined;
  return { users, groups };
}
