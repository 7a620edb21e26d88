/** Why the kernel lets an account make no user namespace, in words that tell what to change. */
import { readFile } from "node:fs/promises";
import { MeshError } from "#lib/mesh-error.ts";

interface Setting {
  readonly name: string;
  /** Text of the setting with which user namespaces are refused. */
  readonly refuses: string;
  readonly allows: string;
}

const SETTINGS: readonly Setting[] = [
  { name: "kernel.unprivileged_userns_clone", refuses: "0", allows: "1" },
  { name: "user.max_user_namespaces", refuses: "0", allows: "10000" },
  { name: "kernel.apparmor_restrict_unprivileged_userns", refuses: "1", allows: "0" },
];

/** Text of a setting by its name; undefined where the kernel does not have it. */
export type ReadSetting = (name: string) => Promise<string | undefined>;

/** Reads a kernel setting of this machine. */
async function readSetting(name: string): Promise<string | undefined> {
  // Most kernels have only some of them.
  const text = await readFile(`/proc/sys/${name.replaceAll(".", "/")}`, "utf8").catch(() => undefined);
  return text?.trim();
}

/** The error for a user namespace that could not be made. */
export async function refusal(cause: unknown, read: ReadSetting = readSetting): Promise<MeshError> {
  for (const { name, refuses, allows } of SETTINGS) {
    if ((await read(name)) !== refuses) continue;
    const change = `allow them with \`sudo sysctl -w ${name}=${allows}\`, or run it with sudo`;
    return new MeshError(
      "NOT_ROOT",
      `Cannot run a mesh without root: ${name}=${refuses} forbids user namespaces; ${change}`,
    );
  }
  return new MeshError(
    "NOT_ROOT",
    "Cannot run a mesh without root: no user namespace can be made here (a container may forbid them); run it with sudo",
    { cause },
  );
}
