/** An account that is not root runs its meshes in a user namespace: every command about a mesh runs once more in there. */
import { access, constants } from "node:fs/promises";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { accountsHere } from "#standalone/host/user-namespace.ts";
import { finish } from "./exit-codes.ts";
import { defaultStateFolder } from "./options.ts";
import type { Terminal } from "./terminal.ts";

/** They need no mesh. */
const FOR_ANYBODY: readonly string[] = ["version", "completion", "init", "doctor", "help", "translate"];
/** They ask a control plane, which may be elsewhere. */
const ASKING: readonly string[] = ["proxy-status", "pushes"];
/** They may take the place of a machine that was lost. */
const CHANGING: readonly string[] = ["up", "down"];

const DIFFERENCES = {
  many: "without root: accounts of this mesh are those that /etc/subuid gives you; root and others do not see it",
  one: "without root: apps run under your own account (no other user ids are mapped) and can read your files (separate users need the package uidmap and entries in /etc/subuid and /etc/subgid); proxies are spared from capture by a packet mark; root and others do not see this mesh",
};

/** Runs the command on the person's own machine, unless that is not needed; false when it is to run here. */
export async function runOnOwnMachine(terminal: Terminal, command: Command): Promise<boolean> {
  const name = command.name();
  if (process.getuid?.() === 0 || FOR_ANYBODY.includes(name)) return false;
  // What is read from files, or asked of a control plane elsewhere, needs no mesh either.
  const { file, address } = command.opts();
  if (file !== undefined || (ASKING.includes(name) && address !== undefined)) return false;
  await finish(terminal, async () => {
    const { runRootless } = await import("#standalone/rootless/run-rootless.ts");
    const { env, self, args } = terminal;
    const folder = dirname(defaultStateFolder(terminal, "any"));
    return runRootless({
      person: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, name: ownName() },
      folder,
      command: [...self, ...args],
      env: { ...env, XDG_STATE_HOME: dirname(folder), [ROOTLESS]: `${process.getuid?.()}:${process.getgid?.()}` },
      cwd: process.cwd(),
      changes: CHANGING.includes(name),
      hasProgram: (program) => isInPath(program, env.PATH ?? ""),
      onMade: (accounts) => {
        if (name === "up") terminal.say(DIFFERENCES[accounts]);
      },
    });
  });
  return true;
}

/** Tells the second run that the machine is one's own. */
const ROOTLESS = "MIZZEN_ROOTLESS";

/** Whether this process is on such a machine. */
export function isRootless({ env }: Pick<Terminal, "env">): boolean {
  return env[ROOTLESS] !== undefined;
}

/** Whom the person is outside, where nobody else is mapped; else their account is root's on their machine. */
export function ownerOfMachine(env: Terminal["env"]): { readonly uid: number; readonly gid: number } | undefined {
  const [uid, gid] = (env[ROOTLESS] ?? "").split(":").map(Number);
  if (uid === undefined || gid === undefined) return undefined;
  return accountsHere() === "one" ? { uid, gid } : { uid: 0, gid: 0 };
}

/** A number without an entry in /etc/passwd has no name. */
function ownName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}

async function isInPath(program: string, path: string): Promise<boolean> {
  const places = path.split(":").map((folder) => access(join(folder, program), constants.X_OK));
  return (await Promise.allSettled(places)).some(({ status }) => status === "fulfilled");
}
