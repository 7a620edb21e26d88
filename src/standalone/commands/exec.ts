/** Runs a command inside a member. */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { MeshError } from "#lib/mesh-error.ts";
import { enterCommand } from "../plan/enter.ts";
import type { Shell } from "../plan/process.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;
/** A terminal sends these to the command itself. */
const FROM_TERMINAL: readonly string[] = ["SIGINT", "SIGQUIT"];

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
    // The command decides what a signal means; we end when it does.
    const forward = (signal: NodeJS.Signals) => {
      if (!(process.stdin.isTTY && FROM_TERMINAL.includes(signal))) child.kill(signal);
    };
    for (const signal of SIGNALS) process.on(signal, forward);
    child.once("error", (cause) => {
      reject(new MeshError("EXEC_FAILED", `Cannot run a command in "${place.hostname}"`, { cause }));
    });
    child.once("exit", (code, signal) => {
      for (const name of SIGNALS) process.off(name, forward);
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}
