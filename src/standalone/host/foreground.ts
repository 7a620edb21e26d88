/** A program in a person's terminal: it gets the keyboard, the screen and the signals, and its exit code is ours. */
import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { insidePid, signalProcess } from "./processes.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;
/** A terminal sends these to the program itself. */
const FROM_TERMINAL: readonly string[] = ["SIGINT", "SIGQUIT"];

export interface ForegroundInput {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The program enters a place (`plan/enter.ts`): signals are for the process inside. */
  readonly inside?: boolean;
  /** What it finds open beside its three standard streams. */
  readonly more?: readonly ("pipe" | number)[] | undefined;
}

export interface Foreground {
  readonly child: ChildProcess;
  /** The exit code as a shell would give it: 128 and the signal's number for one that was killed. */
  readonly ended: Promise<number>;
}

async function send(child: ChildProcess, inside: boolean, signal: NodeJS.Signals): Promise<void> {
  const pid = inside ? await insidePid(child.pid ?? 0) : undefined;
  if (pid === undefined) child.kill(signal);
  else signalProcess(pid, signal);
}

/** Starts a program. What a signal means is its own business: we pass it on, and end when it does. */
export function startForeground({ argv, env, inside = false, more = [] }: ForegroundInput): Foreground {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, {
    env: { ...env },
    stdio: ["inherit", "inherit", "inherit", ...more],
  });
  const pass = (signal: NodeJS.Signals) => {
    if (!(process.stdin.isTTY && FROM_TERMINAL.includes(signal))) void send(child, inside, signal);
  };
  for (const signal of SIGNALS) process.on(signal, pass);
  const ended = new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  }).finally(() => {
    for (const signal of SIGNALS) process.off(signal, pass);
  });
  return { child, ended };
}
