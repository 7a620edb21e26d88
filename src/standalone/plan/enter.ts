/**
 * The command line by which a program runs inside a member: in its network namespace, under its host name, with its own
 * files in /etc, as an account of its own. Everything is given up again with the process: mounts and host name are
 * private to it, so nothing is left on the machine. Each step execs the next, so the process id stays the program's.
 */
import { NETNS_FOLDER, namespaceFile } from "./names.ts";

export interface Place {
  /** Name of the network namespace. */
  readonly netns: string;
  readonly hostname: string;
  /** Folder whose files are seen in /etc. */
  readonly etc: string;
}

/** Whom a program runs as. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

export const ROOT: Account = { uid: 0, gid: 0, home: "/" };
export const NOBODY: Account = { uid: 65_534, gid: 65_534, home: "/" };

/** Letting go of the other namespaces first: a copy of their mounts would keep them alive after their mesh is gone. */
const SETTLE = `set -e
umount --lazy ${NETNS_FOLDER}
for file in "$1"/*; do
  if [ -e "/etc/\${file##*/}" ]; then mount --bind "$file" "/etc/\${file##*/}"; fi
done
echo "$2" > /proc/sys/kernel/hostname
shift 2
exec "$@"`;

/** Lets a program read every file of the machine, and nothing more. */
export const READ_ANYTHING = "dac_read_search";

export interface EnterInput {
  readonly place: Place;
  readonly account: Account;
  /** Kernel capability that the account keeps. */
  readonly capability?: typeof READ_ANYTHING | undefined;
  readonly command: readonly string[];
}

/** The whole command line. */
export function enterCommand({ place, account, capability, command }: EnterInput): readonly string[] {
  const settle = ["sh", "-c", SETTLE, "sh", place.etc, place.hostname];
  const enter = [
    "nsenter",
    `--net=${namespaceFile(place.netns)}`,
    "--",
    "unshare",
    "--mount",
    "--uts",
    "--",
    ...settle,
  ];
  return account.uid === 0 ? [...enter, ...command] : [...enter, ...become(account, capability), ...command];
}

function become({ uid, gid }: Account, capability: string | undefined): readonly string[] {
  const kept = capability === undefined ? [] : [`--inh-caps=+${capability}`, `--ambient-caps=+${capability}`];
  return ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", ...kept, "--"];
}
