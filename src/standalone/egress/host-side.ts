/**
 * What a way out changes on the machine itself: a cable, a table of rules, and interfaces that forward packets. The last
 * is shared by all meshes with a way out: who comes first writes down which interfaces did not forward before, and who
 * goes last switches them off again. Everything is written down before it is done, so that it can be undone at any moment.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { MeshError } from "#lib/mesh-error.ts";
import { runCommand } from "../host/command.ts";
import { ignoring } from "../host/ignoring.ts";
import { MESHES_FOLDER } from "../plan/names.ts";
import {
  chooseLink,
  type EgressLink,
  hostLines,
  hostRules,
  LINK_PREFIX,
  linkName,
  tableName,
  usedAddresses,
} from "./link.ts";

/** Names of interfaces that forward because of us, one a line. */
const SWITCHED_ON = join(MESHES_FOLDER, "forwarding");

const SWITCH_ON = `set -e
: > "$1"
for setting in /proc/sys/net/ipv4/conf/*/forwarding; do
  name=\${setting%/forwarding}
  name=\${name##*/}
  case $name in all | default | lo | ${LINK_PREFIX}*) continue ;; esac
  if [ "$(cat "$setting")" = 0 ]; then
    echo "$name" >> "$2"
    echo 1 > "$setting"
  fi
done
if [ -e "$2" ]; then cat "$2"; fi`;

/** Where others let nothing be forwarded, what comes from the cable and goes to it needs a permit. */
const CONNECT = `set -e
ip -batch -
echo 1 > "/proc/sys/net/ipv4/conf/$1/forwarding"
if iptables -S FORWARD 2>/dev/null | grep -q '^-P FORWARD DROP'; then
  iptables -I FORWARD -i "$1" -j ACCEPT
  iptables -I FORWARD -o "$1" -j ACCEPT
fi`;

const DISCONNECT = `nft delete table ip "$3" 2>/dev/null
ip link delete "$2" 2>/dev/null
if iptables-save -t filter 2>/dev/null | grep -q -e "$2"; then
  iptables -D FORWARD -i "$2" -j ACCEPT
  iptables -D FORWARD -o "$2" -j ACCEPT
fi
for other in /proc/sys/net/ipv4/conf/${LINK_PREFIX}*; do
  if [ -e "$other" ]; then rm -f "$1"; exit 0; fi
done
if [ -e "$4" ]; then
  while read -r name; do
    if [ -e "/proc/sys/net/ipv4/conf/$name" ]; then echo 0 > "/proc/sys/net/ipv4/conf/$name/forwarding"; fi
  done < "$4"
  rm -f "$4"
fi
rm -f "$1"`;

/** How a program is run in the machine's own network. */
export type Outside = readonly string[];

export interface HostSideInput {
  readonly id: string;
  /** Name of the fabric's namespace. */
  readonly fabric: string;
  readonly outside: Outside;
}

/** Connects a fabric with the machine's network. A failure leaves nothing. */
export async function connectHost({ id, fabric, outside }: HostSideInput): Promise<EgressLink> {
  const printed = await runCommand({ argv: [...outside, "ip", "-oneline", "-4", "address"] });
  const link = chooseLink(id, usedAddresses(printed));
  if (link === undefined) throw new MeshError("EGRESS_FAILED", "Cannot make a way out: 198.18.0.0/15 is all in use");
  try {
    const names = await runCommand({ argv: [...locked(outside), SWITCH_ON, "sh", markFile(id), SWITCHED_ON] });
    const stdin = `${hostLines(link, fabric).join("\n")}\n`;
    await runCommand({ argv: [...outside, "sh", "-c", CONNECT, "sh", link.name], stdin });
    const switchedOn = names.split("\n").filter((name) => name !== "");
    await runCommand({ argv: [...outside, "nft", "-f", "-"], stdin: hostRules(link, switchedOn) });
    return link;
  } catch (cause) {
    await disconnectHost(id, outside);
    throw new MeshError("EGRESS_FAILED", "Cannot make a way out to this machine's network", { cause });
  }
}

/** Takes all of it back; nothing is done for a mesh that has no way out. */
export async function disconnectHost(id: string, outside: Outside): Promise<void> {
  if ((await ignoring(["ENOENT"], () => stat(markFile(id)))) === undefined) return;
  const names = [markFile(id), linkName(id), tableName(id), SWITCHED_ON];
  await runCommand({ argv: [...locked(outside), DISCONNECT, "sh", ...names] });
}

/** Tells that the mesh may have changed something of the machine. */
function markFile(id: string): string {
  return join(MESHES_FOLDER, `${id}.egress`);
}

function locked(outside: Outside): readonly string[] {
  return [...outside, "flock", "/run", "sh", "-c"];
}
