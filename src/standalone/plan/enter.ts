/**
 * The command line by which a program runs inside a member: in its network namespace, under its host name, with its own
 * files in /etc, as an account of its own. Everything is given up again with the process: mounts and host name are
 * private to it, so nothing is left on the machine. Each step execs the next, so the process id stays the program's.
 */
import { PROXY_ID } from "../mesh/mesh.ts";
import { NETNS_FOLDER, namespaceFile } from "./names.ts";
import { PROXY_BOOTSTRAP, PROXY_RESOLV_CONF } from "./one-account.ts";

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

/**
 * Letting go of the other namespaces first: a copy of their mounts would keep them alive after their mesh is gone.
 *
 * In a user namespace with a single account nobody can become another one. There the proxy keeps the only right it needs,
 * to mark what it sends (`one-account.ts`), and an app gets a user namespace of its own, in which the account goes by the
 * app's number.
 */
const SETTLE = `set -e
etc=$1 name=$2 uid=$3 gid=$4 kept=$5
shift 5
umount --lazy ${NETNS_FOLDER}
for file in "$etc"/*; do
  if [ -e "/etc/\${file##*/}" ]; then mount --bind "$file" "/etc/\${file##*/}"; fi
done
{ echo "$name" > /proc/sys/kernel/hostname; } 2>/dev/null || hostname "$name"
if [ "$uid" = 0 ]; then exec "$@"; fi
{ read -r _ _ count; read -r more || true; } < /proc/self/uid_map
if [ "$count$more" != 1 ]; then
  exec setpriv "--reuid=$uid" "--regid=$gid" --clear-groups \${kept:+"--inh-caps=+$kept" "--ambient-caps=+$kept"} -- "$@"
fi
if [ "$uid" = ${PROXY_ID} ]; then
  mount --bind "$etc/${PROXY_RESOLV_CONF}" /etc/resolv.conf
  export "ISTIO_BOOTSTRAP_OVERRIDE=$etc/${PROXY_BOOTSTRAP}"
  exec setpriv --bounding-set=-all,+net_admin -- "$@"
fi
exec unshare --user "--map-user=$uid" "--map-group=$gid" -- "$@"`;

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
  const { uid, gid } = account;
  return [
    ...["nsenter", `--net=${namespaceFile(place.netns)}`, "--", "unshare", "--mount", "--uts", "--"],
    ...["sh", "-c", SETTLE, "sh", place.etc, place.hostname, String(uid), String(gid), capability ?? ""],
    ...command,
  ];
}
