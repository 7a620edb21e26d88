/**
 * The keeper of a place: the first process of its process namespace. It does nothing but live. As long as it does, the
 * place's namespaces exist, and when it is killed the kernel kills everything else in the place. Processes that lost
 * their parents become its children; the kernel forgets them, because the keeper ignores SIGCHLD.
 */
import { PROXY_ID } from "../mesh/mesh.ts";
import { NOBODY, type Place } from "./enter.ts";
import { NETNS_FOLDER, namespaceFile } from "./names.ts";
import { PROXY_RESOLV_CONF } from "./one-account.ts";
import { NO_HOME } from "./users.ts";

/** What `keepCommand()` prints beside the keeper's number where the kernel refuses a /proc of the place's own. */
export const SHARED_PROC = "shared /proc";

/** Runs as the first process of the new process namespace. */
const KEEPER = `uid=$1
mount -t proc proc /proc 2>/dev/null || echo "${SHARED_PROC}"
set -- env --ignore-signal=CHLD sleep infinity
{ read -r _ _ count; read -r more || true; } < /proc/self/uid_map
if [ "$count$more" != 1 ]; then set -- "--reuid=$uid" "--regid=$uid" --clear-groups -- "$@"; fi
exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all "$@" </dev/null >/dev/null 2>&1`;

/**
 * Lets go of the other network namespaces first: a copy of their mounts would keep them alive after their mesh is gone.
 * Their folder then serves to keep hold of the state folder while that is covered. Programs such as `psql` and `ssh` refuse
 * to run as a user that has no name.
 */
const FURNISH = `set -e
umask 022
etc=$1 name=$2 state=$3 uid=$4 keeper=$5
shift 5
umount --lazy ${NETNS_FOLDER}
case $uid in
  ${PROXY_ID} | ${NOBODY.uid}) ;;
  *) { cat /etc/passwd; echo "workload:x:$uid:$uid::${NO_HOME}:/bin/sh"; } > "$etc/passwd" ;;
esac
for file in "$etc"/*; do
  if [ -e "/etc/\${file##*/}" ]; then mount --bind "$file" "/etc/\${file##*/}"; fi
done
{ read -r _ _ count; read -r more || true; } < /proc/self/uid_map
if [ "$count$more" = 1 ] && [ "$uid" = ${PROXY_ID} ]; then
  mount --bind "$etc/${PROXY_RESOLV_CONF}" /etc/resolv.conf
fi
{ echo "$name" > /proc/sys/kernel/hostname; } 2>/dev/null || hostname "$name"
if [ -d /dev/shm ]; then mount -t tmpfs -o mode=1777 tmpfs /dev/shm; fi
mount --bind "$state" ${NETNS_FOLDER}
mount -t tmpfs -o mode=755,size=64k tmpfs "$state"
for part; do
  if [ -d "${NETNS_FOLDER}/$part" ]; then
    mkdir -p "$state/$part"
    mount --bind "${NETNS_FOLDER}/$part" "$state/$part"
  fi
done
umount ${NETNS_FOLDER}
exec unshare --pid -- sh -c 'sh -c "$1" sh "$2" & echo $!' sh "$keeper" "$uid"`;

/** Makes the namespaces of a place. It prints the keeper's number, and ends when programs may enter. */
export function keepCommand({ netns, etc, hostname, state, owner, visible }: Place): readonly string[] {
  return [
    ...["nsenter", `--net=${namespaceFile(netns)}`, "--", "unshare", "--mount", "--uts", "--ipc", "--"],
    ...["sh", "-c", FURNISH, "sh", etc, hostname, state, String(owner), KEEPER, ...visible],
  ];
}
