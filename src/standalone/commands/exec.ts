/** Runs a command inside a member. */
import { MeshError } from "#lib/mesh-error.ts";
import { startForeground } from "../host/foreground.ts";
import { enterFromTerminal } from "../plan/enter.ts";
import type { Shell } from "../plan/process.ts";

/** In the member's network and with its names, as its app's user; answers with the exit code, as a shell would. */
export async function execIn(
  { place, account, env, cwd }: Shell,
  command: readonly string[],
  term?: string,
): Promise<number> {
  try {
    return await startForeground({
      argv: enterFromTerminal({ place, account, cwd, command }),
      inside: true,
      env: { ...env, ...(term === undefined ? {} : { TERM: term }) },
    }).ended;
  } catch (cause) {
    throw new MeshError("EXEC_FAILED", `Cannot run a command in "${place.hostname}"`, { cause });
  }
}

/** The machine's bash, or the shell that every machine has, with a prompt that says where one is. The machine's own settings of it would hide that. */
const SHELL = "if command -v bash >/dev/null; then exec bash --noprofile --norc; else exec sh; fi";

/** The command that opens a shell in a member of this name. */
export function shellIn(name: string): readonly string[] {
  return ["env", `PS1=${name} $ `, "sh", "-c", SHELL];
}
