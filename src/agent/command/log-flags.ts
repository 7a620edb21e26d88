/** Istio's `--log_*` flags. They may stand before or behind the name of the command. */
import type { Command } from "commander";
import { createLogger, LOG_LEVELS, type Logger, type LogLevel, parseLogLevels } from "#lib/log/log.ts";
import { rotatingFile } from "#lib/log/log-file.ts";
import { fileWriter, sparing, streamWriter, type WriteLine } from "#lib/log/log-writers.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { LARGEST_INT32, wholeNumber } from "./whole-number.ts";

interface LogFlags {
  readonly log_as_json?: boolean;
  readonly log_caller?: string;
  readonly log_output_level?: string;
  readonly log_stacktrace_level?: string;
  readonly log_target?: readonly string[];
  readonly log_rotate?: string;
  readonly log_rotate_max_age?: number;
  readonly log_rotate_max_backups?: number;
  readonly log_rotate_max_size?: number;
}

/** Areas that have a level of their own. */
// biome-ignore format: a list of names
const LOG_SCOPES: readonly string[] = [
  "ads", "all", "authn", "authorization", "ca", "cache", "citadelclient", "controllers", "default", "delta", "dns",
  "gcecred", "googleca", "googlecas", "grpc", "grpcgen", "healthcheck", "iptables", "klog", "mockcred", "model",
  "monitoring", "probes", "sds", "security", "serviceentry", "spiffe", "stsclient", "stsserver", "token", "trustBundle",
  "validation", "wasm", "wle", "xdsproxy",
];
const MB = 1024 * 1024;
const DAY_MS = 86_400_000;
const DEFAULTS = { maxAge: 30, maxBackups: 1000, maxSize: 104_857_600 };

/** Adds them. */
export function addLogFlags(command: Command): Command {
  const scopes = `[${LOG_SCOPES.join(", ")}]`;
  const pairs = `in the form of <scope>:<level>,... where scope can be one of ${scopes} and level one of [${[...LOG_LEVELS].reverse().join(", ")}]`;
  return command
    .option("--log_as_json", "Whether to format output as JSON or in plain console-friendly format")
    .option("--log_caller <string>", `Comma-separated scopes whose lines tell from where they come, any of ${scopes}`)
    .option("--log_output_level <string>", `Comma-separated least level of messages by scope, ${pairs}`)
    .option(
      "--log_stacktrace_level <string>",
      `Comma-separated least level of messages with a stack trace by scope, ${pairs} (default "default:none")`,
    )
    .option(
      "--log_target <stringArray>",
      "Where to log: any path, or the special values stdout and stderr; may be repeated (default [stdout])",
      collect,
    )
    .option("--log_rotate <string>", "The path for the optional rotating log file")
    .option(
      "--log_rotate_max_age <int>",
      withPreset("Days to keep rotated files; 0 for no limit", DEFAULTS.maxAge),
      wholeNumber("--log_rotate_max_age"),
    )
    .option(
      "--log_rotate_max_backups <int>",
      withPreset("Rotated files to keep; 0 for no limit", DEFAULTS.maxBackups),
      wholeNumber("--log_rotate_max_backups"),
    )
    .option(
      "--log_rotate_max_size <int>",
      withPreset("Megabytes at which the file is rotated", DEFAULTS.maxSize),
      wholeNumber("--log_rotate_max_size"),
    )
    .option(
      "--vklog <Level>",
      "number for the log level verbosity of Kubernetes' client library. Like -v flag. ex: --vklog=9",
      wholeNumber("--vklog", LARGEST_INT32),
    );
}

/** Presets are applied when the flags of a program and of its command were joined; until then absent is absent. */
function withPreset(text: string, preset: number): string {
  return `${text} (default ${preset})`;
}

/** The logger that the flags of a command and of those above it describe. Throws when they cannot be followed. */
export function loggerOf(command: Command): Logger {
  const flags: LogFlags = { ...command.parent?.opts<LogFlags>(), ...command.opts<LogFlags>() };
  const writers = [...(flags.log_target ?? ["stdout"]).map(writerOf), ...rotated(flags)];
  return createLogger({
    json: flags.log_as_json ?? false,
    levels: levelsOf("--log_output_level", flags.log_output_level ?? ""),
    // Unlike the other flag this one cannot be said to be nothing.
    stackLevels: levelsOf("--log_stacktrace_level", (flags.log_stacktrace_level ?? "default:none") || ","),
    callers: new Set((flags.log_caller ?? "").split(",").filter((scope) => scope !== "")),
    write: (line) => {
      for (const write of writers) write(line);
    },
  });
}

/** Every flag of a command, sorted, as Istio's programs print them when they start. */
export function flagLines(command: Command): readonly string[] {
  const given: Readonly<Record<string, unknown>> = { ...FLAG_DEFAULTS, ...command.optsWithGlobals() };
  return Object.keys(given)
    .sort()
    .map((name) => `FLAG: --${name}="${Array.isArray(given[name]) ? `[${given[name].join(",")}]` : given[name]}"`);
}

const FLAG_DEFAULTS = {
  help: false,
  log_as_json: false,
  log_caller: "",
  log_output_level: "",
  log_stacktrace_level: "default:none",
  log_target: ["stdout"],
  vklog: 0,
};

function levelsOf(flag: string, text: string): Record<string, LogLevel> {
  const { levels, problems } = parseLogLevels(text);
  const [problem] = problems;
  if (problem !== undefined) throw new MeshError("LOG_FLAGS_INVALID", `${flag}: ${problem}`);
  return levels;
}

function writerOf(target: string): WriteLine {
  if (target === "stdout") return streamWriter(process.stdout);
  if (target === "stderr") return streamWriter(process.stderr);
  return opened("--log_target", target, () => fileWriter(target));
}

function rotated(flags: LogFlags): WriteLine[] {
  const path = flags.log_rotate ?? "";
  if (path === "") return [];
  const limits = {
    maxBytes: MB * (flags.log_rotate_max_size ?? DEFAULTS.maxSize),
    maxAgeMs: DAY_MS * (flags.log_rotate_max_age ?? DEFAULTS.maxAge),
    maxBackups: flags.log_rotate_max_backups ?? DEFAULTS.maxBackups,
  };
  return [opened("--log_rotate", path, () => sparing(rotatingFile(path, limits)))];
}

function opened(flag: string, path: string, open: () => WriteLine): WriteLine {
  try {
    return open();
  } catch (cause) {
    throw new MeshError("LOG_UNWRITABLE", `${flag}: cannot write to ${path}`, { cause });
  }
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
