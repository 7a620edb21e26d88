/** Programs that are run to look at and change the network: for real, or only written down. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";

export interface CommandResult {
  /** Exit code; 127 when there is no such program. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Commands {
  run(command: string, args: readonly string[], input?: string): Promise<CommandResult>;
}

export interface SystemCommandsOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** File of the network namespace to run in; empty for the one of the caller. */
  readonly networkNamespace?: string;
}

/** Runs programs; those of administrators are found even if PATH leaves their folders out. */
export function systemCommands({ env, networkNamespace = "" }: SystemCommandsOptions): Commands {
  const path = [env.PATH ?? "", "/usr/sbin", "/sbin"].filter((part) => part !== "").join(":");
  // Rules are read back as text, which must not depend on the caller's language.
  const childEnv = { ...env, PATH: path, LC_ALL: "C" };
  const inside = networkNamespace === "" ? [] : ["nsenter", `--net=${networkNamespace}`, "--"];
  return {
    run: (command, args, input = "") => {
      const [program = command, ...rest] = [...inside, command, ...args];
      return run({ program, args: rest, input, env: childEnv });
    },
  };
}

interface Run {
  readonly program: string;
  readonly args: readonly string[];
  readonly input: string;
  readonly env: NodeJS.ProcessEnv;
}

async function run({ program, args, input, env }: Run): Promise<CommandResult> {
  const child = spawn(program, args, { env, stdio: ["pipe", "pipe", "pipe"] });
  const ended = new Promise<number>((resolve) => {
    child.on("error", () => resolve(127));
    child.on("close", (code) => resolve(code ?? 1));
  });
  // A program that does not read its input closes the pipe; its exit code says what happened.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr: stderr.trim() };
}

export interface RecordedCommands extends Commands {
  /** A line per command, and the lines of their input instead where there was some. */
  readonly lines: readonly string[];
}

/** Runs nothing: every program succeeds and prints nothing. */
export function recordedCommands(): RecordedCommands {
  const lines: string[] = [];
  return {
    lines,
    run: (command, args, input = "") => {
      if (input === "") lines.push([command, ...args].join(" "));
      else lines.push(...input.trimEnd().split("\n"));
      return Promise.resolve({ code: 0, stdout: "", stderr: "" });
    },
  };
}
