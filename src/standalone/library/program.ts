/** Programs that the library runs to their end, or talks to while they run. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { constants } from "node:os";
import { text } from "node:stream/consumers";
import { MeshError } from "#lib/mesh-error.ts";
import type { ExecResult } from "./api.ts";

export interface ProgramInput {
  readonly argv: readonly string[];
  /** Instead of the variables of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  /** Kills the program when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

export interface Program {
  readonly child: ChildProcessWithoutNullStreams;
  /** The exit code as a shell gives it. */
  readonly ended: Promise<number>;
}

/** Starts a program with pipes. */
export function startProgram({ argv, env, cwd, signal }: ProgramInput): Program {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, {
    stdio: ["pipe", "pipe", "pipe"],
    ...(env === undefined ? {} : { env }),
    ...(cwd === undefined ? {} : { cwd }),
  });
  // A program may end without reading its input.
  child.stdin.on("error", () => undefined);
  const kill = () => void child.kill("SIGKILL");
  signal?.addEventListener("abort", kill, { once: true });
  const ended = new Promise<number>((resolve, reject) => {
    child.once("error", (cause) => reject(new MeshError("EXEC_FAILED", `Cannot run "${program}"`, { cause })));
    child.once("close", (code, killer) => resolve(code ?? 128 + (killer === null ? 0 : constants.signals[killer])));
  }).finally(() => signal?.removeEventListener("abort", kill));
  if (signal?.aborted === true) kill();
  return { child, ended };
}

/** Runs a program to its end. */
export async function runProgram(input: ProgramInput, stdin: string | Uint8Array = ""): Promise<ExecResult> {
  const { child, ended } = startProgram(input);
  child.stdin.end(stdin);
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  input.signal?.throwIfAborted();
  return { code, stdout, stderr };
}
