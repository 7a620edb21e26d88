/** Network namespaces under /run/netns, so that `ip netns` lists them. */
import { open, readdir, rm, stat } from "node:fs/promises";
import { NETNS_FOLDER, namespaceFile, namespacePrefix } from "../plan/names.ts";
import type { NetworkPlan } from "../plan/network.ts";
import { runCommand } from "./command.ts";
import { ignoring } from "./ignoring.ts";

/** Makes an empty network namespace. The folder must be there. */
export async function makeNamespace(netns: string): Promise<void> {
  const file = namespaceFile(netns);
  await (await open(file, "wx", 0o444)).close();
  await runCommand({ argv: ["unshare", `--net=${file}`, "true"] });
}

const SET_UP = `for pair in "$@"; do
  if [ -e "/proc/sys/net/\${pair%%=*}" ]; then echo "\${pair#*=}" > "/proc/sys/net/\${pair%%=*}"; fi
done
exec ip -batch -`;

/** Settings, links, addresses and routes of a namespace, by one process. */
export async function setUpNetwork({ netns, sysctls, ip }: NetworkPlan): Promise<void> {
  const pairs = Object.entries(sysctls).map(([name, value]) => `${name}=${value}`);
  await runCommand({ argv: [...inside(netns), "sh", "-c", SET_UP, "sh", ...pairs], stdin: `${ip.join("\n")}\n` });
}

/** Adds to the rules of a namespace. */
export async function restoreRules(netns: string, rules: string): Promise<void> {
  await runCommand({ argv: [...inside(netns), "iptables-restore", "--noflush", "--wait"], stdin: rules });
}

/** Names of the namespaces of a mesh that exist, in whatever state. */
export async function namespacesOf(id: string): Promise<string[]> {
  const names = await ignoring(["ENOENT"], () => readdir(NETNS_FOLDER));
  return (names ?? []).filter((name) => name.startsWith(namespacePrefix(id)));
}

/** What tells whether a process is in the namespace; undefined when the file is not a namespace. */
export async function namespaceInode(netns: string): Promise<bigint | undefined> {
  return (await ignoring(["ENOENT"], () => stat(namespaceFile(netns), { bigint: true })))?.ino;
}

/** Removes a namespace; links in it go with it as soon as its last process has ended. */
export async function removeNamespace(netns: string): Promise<void> {
  const file = namespaceFile(netns);
  // Not a mount when making it was interrupted.
  await runCommand({ argv: ["umount", "--lazy", file] }).catch(() => undefined);
  await rm(file, { force: true });
}

function inside(netns: string): readonly string[] {
  return ["nsenter", `--net=${namespaceFile(netns)}`, "--"];
}
