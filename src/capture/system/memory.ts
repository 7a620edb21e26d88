/**
 * Remembers interfaces of virtual machines between runs. A rule such as `-i tap0 -j RETURN` has nothing that marks it as
 * ours, so that only who made it knows. Where the file cannot be written or is gone, such rules are known by their company
 * or by the same flags.
 */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Commands } from "./commands.ts";

/** Goes with the machine's start, as rules do. */
const FOLDER = "/run/istio-iptables";

export class Memory {
  readonly #file: string | undefined;

  private constructor(file: string | undefined) {
    this.#file = file;
  }

  /** The memory of the network namespace in which the commands run. */
  static async open(commands: Commands, folder = FOLDER): Promise<Memory> {
    const { stdout } = await commands.run("readlink", ["/proc/self/ns/net"]);
    const id = /^net:\[(\d+)\]$/.exec(stdout.trim())?.[1];
    return new Memory(id === undefined ? undefined : join(folder, id));
  }

  async recall(): Promise<readonly string[]> {
    if (this.#file === undefined) return [];
    // No file is the usual case: there was nothing to remember.
    const text = await readFile(this.#file, "utf8").catch(() => "");
    return text.split("\n").filter((name) => name !== "");
  }

  /** Replaces what was remembered; nothing to remember leaves no file. */
  async remember(interfaces: readonly string[]): Promise<void> {
    if (this.#file === undefined) return;
    if (interfaces.length === 0) {
      await rm(this.#file, { force: true });
      return;
    }
    try {
      await mkdir(join(this.#file, ".."), { recursive: true });
      await writeFile(this.#file, `${interfaces.join("\n")}\n`);
    } catch {
      // A container may have no place for it; then the same flags are needed to clean up.
    }
  }
}
