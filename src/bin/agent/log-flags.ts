/** Istio's `--log_*` flags. They may stand before or behind the name of the command. */
import { appendFileSync } from "node:fs";
import type { Command } from "commander";
import { createLogger, type Logger, parseLogLevels } from "#lib/log.ts";
import { MeshError } from "#lib/mesh-error.ts";

export interface LogFlags {
  readonly log_as_json?: boolean;
  readonly log_output_level?: string;
  readonly log_target?: readonly string[];
}

/** Adds them. Those that have no meaning here are accepted, since installations set them. */
export function addLogFlags(command: Command): Command {
  return command
    .option("--log_as_json", "format the log as JSON")
    .option("--log_output_level <scope:level,...>", "least level of messages, by scope")
    .option("--log_target <path>", "where to log: stdout, stderr or a file; may be repeated", collect)
    .option("--log_caller <scopes>", "accepted without effect")
    .option("--log_stacktrace_level <scope:level,...>", "accepted without effect")
    .option("--log_rotate <path>", "accepted without effect")
    .option("--log_rotate_max_age <days>", "accepted without effect")
    .option("--log_rotate_max_backups <number>", "accepted without effect")
    .option("--log_rotate_max_size <megabytes>", "accepted without effect")
    .option("--vklog <level>", "accepted without effect");
}

/** The logger that the flags of a command and of those above it describe. Throws when they cannot be followed. */
export function loggerOf(command: Command): Logger {
  const flags = { ...command.parent?.opts<LogFlags>(), ...command.opts<LogFlags>() };
  const { levels, problems } = parseLogLevels(flags.log_output_level ?? "");
  const [problem] = problems;
  if (problem !== undefined) throw new MeshError("LOG_FLAGS_INVALID", `--log_output_level: ${problem}`);
  const writers = (flags.log_target ?? ["stdout"]).map(writerOf);
  return createLogger({
    json: flags.log_as_json ?? false,
    levels,
    write: (line) => {
      for (const write of writers) write(line);
    },
  });
}

function writerOf(target: string): (line: string) => void {
  if (target === "stdout") return (line) => void process.stdout.write(line);
  if (target === "stderr") return (line) => void process.stderr.write(line);
  try {
    appendFileSync(target, "");
  } catch (cause) {
    throw new MeshError("LOG_UNWRITABLE", `--log_target: cannot write to ${target}`, { cause });
  }
  return (line) => appendFileSync(target, line);
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
