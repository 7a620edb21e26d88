/**
 * The command line by which a program runs in a place: one side of a member, with its own processes, mounts, host name and
 * network, as an account of its own, without capabilities and without a way to get any (`no_new_privs`). The namespaces
 * belong to the place's keeper (`keep.ts`), so every program that enters a place finds the others of that place there, and
 * no others.
 *
 * A process cannot move to another process namespace, only its children can. So `nsenter` stays outside: it forks, waits,
 * and ends the way its child does. When it is killed, so is the child.
 */
import { PROXY_ID } from "../mesh/mesh.ts";
import { namespaceFile } from "./names.ts";
import { PROXY_BOOTSTRAP } from "./one-account.ts";

export interface Place {
  /** Name of the network namespace. */
  readonly netns: string;
  readonly hostname: string;
  /** Folder whose files are seen in /etc. */
  readonly etc: string;
  /** A link to the keeper's namespaces, `/proc/PID/ns`. */
  readonly namespaces: string;
  /** The state folder. It looks empty from inside, but for the parts in `visible`, which are relative to it. */
  readonly state: string;
  readonly visible: readonly string[];
  /** The keeper's user and group: those of the member's own, whoever its app runs as. */
  readonly owner: number;
}

/** Whom a program runs as. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

export const ROOT: Account = { uid: 0, gid: 0, home: "/" };
export const NOBODY: Account = { uid: 65_534, gid: 65_534, home: "/" };

/**
 * In a user namespace with a single account no process can become another one. There the proxy keeps the only right it
 * needs, to mark what it sends (`one-account.ts`), and other programs get a user namespace of their own, in which the
 * account goes by the wanted number.
 */
const BECOME = `set -e
etc=$1 uid=$2 gid=$3 kept=$4
cd -- "$5"
shift 5
ending="--no-new-privs --pdeathsig KILL"
if [ "$uid" = 0 ]; then exec setpriv $ending -- "$@"; fi
{ read -r _ _ count; read -r more || true; } < /proc/self/uid_map
if [ "$count$more" != 1 ]; then
  bounding=-all
  if [ -n "$kept" ]; then
    bounding=-all,+$kept
    ending="$ending --ambient-caps=+$kept"
  fi
  exec setpriv "--reuid=$uid" "--regid=$gid" --clear-groups "--bounding-set=$bounding" \\
    "--inh-caps=-all\${kept:+,+$kept}" $ending -- "$@"
fi
if [ "$uid" = ${PROXY_ID} ]; then
  export "ISTIO_BOOTSTRAP_OVERRIDE=$etc/${PROXY_BOOTSTRAP}"
  exec setpriv --bounding-set=-all,+net_admin $ending -- "$@"
fi
exec unshare --user "--map-user=$uid" "--map-group=$gid" -- setpriv $ending -- "$@"`;

/** A terminal sends its signals to this shell and to the program; the shell has to outlive them. */
const WAIT = `trap : INT QUIT
"$@"
exit "$?"`;

/** Lets a program read every file of the machine, and nothing more. */
export const READ_ANYTHING = "dac_read_search";

export interface EnterInput {
  readonly place: Place;
  readonly account: Account;
  /** Kernel capability that the account keeps. */
  readonly capability?: typeof READ_ANYTHING | undefined;
  /** Working folder, as seen from inside. */
  readonly cwd: string;
  readonly command: readonly string[];
}

/** The whole command line, for a program that only its starter sends signals to. */
export function enterCommand(input: EnterInput): readonly string[] {
  return [...nsenter(input), "--", ...become(input)];
}

/** The same for a program in a terminal. Its exit code is that of a shell: 128 and the number of the signal that ended it. */
export function enterFromTerminal(input: EnterInput): readonly string[] {
  return [...nsenter(input), "--no-fork", "--", "sh", "-c", WAIT, "sh", ...become(input)];
}

function nsenter({ place: { netns, namespaces } }: EnterInput): readonly string[] {
  const kept = { ipc: "ipc", uts: "uts", pid: "pid", mount: "mnt" };
  return [
    "nsenter",
    `--net=${namespaceFile(netns)}`,
    ...Object.entries(kept).map(([option, file]) => `--${option}=${namespaces}/${file}`),
  ];
}

function become({ place, account: { uid, gid }, capability, cwd, command }: EnterInput): readonly string[] {
  return ["sh", "-c", BECOME, "sh", place.etc, String(uid), String(gid), capability ?? "", cwd, ...command];
}
