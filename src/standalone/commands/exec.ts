/** Runs a command inside a member. */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { MeshError } from "#lib/mesh-error.ts";
import { enterCommand } from "../plan/enter.ts";
import type { Shell } from "../plan/process.ts";

const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** In the member's network and with its names, as its app's user; answers with the exit code, as a shell would. */
export function execIn(
  { place, account, env, cwd }: Shell,
  command: readonly string[],
  term?: string,
): Promise<number> {
  const [program = "", ...args] = enterCommand({ place, account, command });
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...env, ...(term === undefined ? {} : { TERM: term }) },
      stdio: "inherit",
    });
    // On a terminal both get the signal; the command decides what it means.
    const forward = (signal: NodeJS.Signals) => void child.kill(signal);
    for (const signal of FORWARDED) process.on(signal, forward);
    child.once("error", (cause) => {
      reject(new MeshError("EXEC_FAILED", `Cannot run a command in "${place.hostname}"`, { cause }));
    });
    child.once("exit", (code, signal) => {
      for (const name of FORWARDED) process.off(name, forward);
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}
