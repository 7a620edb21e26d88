/**
 * The folders under /run that all meshes share: the list of meshes, and the namespaces of `ip netns`. They come with the
 * first mesh and go with the last one. A lock keeps two meshes that come and go at the same moment apart.
 *
 * Like `ip netns add`, we make /run/netns a shared mount: were it made one later, by somebody else's `ip netns add`, the
 * namespaces in it would be mounted twice and could not be removed.
 */
import { join } from "node:path";
import { MESHES_FOLDER, NETNS_FOLDER } from "../plan/names.ts";
import { runCommand } from "./command.ts";

/** Tells that /run/netns was made a mount by us. */
const OUR_MOUNT = join(MESHES_FOLDER, "netns-mount");

const LIST = `set -eC
mkdir -p "$1" "$2"
if ! mountpoint -q "$2"; then
  mount --bind "$2" "$2"
  mount --make-shared "$2"
  : >| "$3"
fi
umask 077
cat > "$4"`;

const UNLIST = `rm -f "$4"
for other in "$1"/*.json; do
  if [ -e "$other" ]; then exit 0; fi
done
if [ -e "$3" ]; then
  # Busy when somebody else has namespaces there: then it is theirs from now on.
  if umount "$2" 2>/dev/null; then rmdir "$2" 2>/dev/null; fi
  rm -f "$3"
fi
rmdir "$1" 2>/dev/null
true`;

/** Lists a mesh by a new file with this text; fails when the file is there already. */
export async function listMesh(file: string, text: string): Promise<void> {
  await locked(LIST, file, text);
}

/** Takes a mesh off the list. */
export async function unlistMesh(file: string): Promise<void> {
  await locked(UNLIST, file, "");
}

async function locked(script: string, file: string, stdin: string): Promise<void> {
  const argv = ["flock", "/run", "sh", "-c", script, "sh", MESHES_FOLDER, NETNS_FOLDER, OUR_MOUNT, file];
  await runCommand({ argv, stdin });
}
