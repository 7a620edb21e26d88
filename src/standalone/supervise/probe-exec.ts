/** A probe by a command beside the app. */
import { spawn } from "node:child_process";
import { errorText } from "#lib/mesh-error.ts";
import type { ProbeResult } from "../fabric/probe.ts";
import { signalProcess } from "../host/processes.ts";
import { enterCommand } from "../plan/enter.ts";
import type { Shell } from "../plan/process.ts";

/** Runs the command once, as the app's user and in its network; undefined when it exits with 0 in time. */
export function probeExec(shell: Shell, command: readonly string[], timeoutMs: number): Promise<ProbeResult> {
  const { place, account, env, cwd } = shell;
  const [program = "", ...args] = enterCommand({ place, account, cwd, command });
  return new Promise((resolve) => {
    const child = spawn(program, args, { env: { ...env }, stdio: "ignore", detached: true });
    const late = setTimeout(() => {
      if (child.pid !== undefined) signalProcess(-child.pid, "SIGKILL");
      resolve(`command did not end in ${timeoutMs} ms`);
    }, timeoutMs);
    const finish = (result: ProbeResult) => {
      clearTimeout(late);
      resolve(result);
    };
    child.once("error", (error) => finish(errorText(error)));
    child.once("exit", (code, signal) => finish(code === 0 ? undefined : `command ended with ${signal ?? code}`));
  });
}
