/** Istio's `--log_*` flags. They may stand before or behind the name of the command. */
import { appendFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { createLogger, LOG_LEVELS, type Logger, type LogLevel, parseLogLevels } from "#lib/log.ts";
import { rotatingFile } from "#lib/log-file.ts";
import { MeshError } from "#lib/mesh-error.ts";

interface LogFlags {
  readonly log_as_json?: boolean;
  readonly log_caller?: string;
  readonly log_output_level?: string;
  readonly log_stacktrace_level?: string;
  readonly log_target?: readonly string[];
  readonly log_rotate?: string;
  readonly log_rotate_max_age?: string;
  readonly log_rotate_max_backups?: string;
  readonly log_rotate_max_size?: string;
}

/** Areas that have a level of their own. */
// biome-ignore format: a list of names
export const LOG_SCOPES: readonly string[] = [
  "ads", "all", "ca", "cache", "citadelclient", "default", "delta", "dns", "gcecred", "googleca", "googlecas",
  "healthcheck", "iptables", "klog", "monitoring", "probes", "sds", "security", "spiffe", "stsclient", "stsserver",
  "token", "validation", "wasm", "xdsproxy",
];
const MB = 1024 * 1024;
const DAY_MS = 86_400_000;
const DEFAULTS = { maxAge: 30, maxBackups: 1000, maxSize: 104_857_600 };

/** Adds them. */
export function addLogFlags(command: Command): Command {
  const scopes = `scope is one of ${LOG_SCOPES.join(", ")}`;
  const levels = `level one of ${[...LOG_LEVELS].reverse().join(", ")}`;
  return command
    .option("--log_as_json", "Whether to format output as JSON or in plain console-friendly format")
    .option("--log_caller <scopes>", `Scopes, separated by commas, whose lines say from where they come; ${scopes}`)
    .option("--log_output_level <scope:level,...>", `Least level of messages by scope; ${scopes}, ${levels}`)
    .option(
      "--log_stacktrace_level <scope:level,...>",
      "Least level of messages with a stack trace (default: default:none)",
    )
    .option("--log_target <path>", "Where to log: stdout, stderr or a file; may be repeated (default: stdout)", collect)
    .option("--log_rotate <path>", "The path for the optional rotating log file")
    .option("--log_rotate_max_age <days>", `Days to keep rotated files; 0 for no limit (default: ${DEFAULTS.maxAge})`)
    .option(
      "--log_rotate_max_backups <number>",
      `Rotated files to keep; 0 for no limit (default: ${DEFAULTS.maxBackups})`,
    )
    .option("--log_rotate_max_size <megabytes>", `Size at which the file is rotated (default: ${DEFAULTS.maxSize})`)
    .addOption(
      new Option("--vklog <level>", "Verbosity of Kubernetes' client library, which this program does without"),
    );
}

/** The logger that the flags of a command and of those above it describe. Throws when they cannot be followed. */
export function loggerOf(command: Command): Logger {
  const flags: LogFlags = { ...command.parent?.opts<LogFlags>(), ...command.opts<LogFlags>() };
  const writers = [...(flags.log_target ?? ["stdout"]).map(writerOf), ...rotated(flags)];
  return createLogger({
    json: flags.log_as_json ?? false,
    levels: levelsOf("--log_output_level", flags.log_output_level ?? ""),
    stackLevels: levelsOf("--log_stacktrace_level", flags.log_stacktrace_level ?? "default:none"),
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

function writerOf(target: string): (line: string) => void {
  if (target === "stdout") return (line) => void process.stdout.write(line);
  if (target === "stderr") return (line) => void process.stderr.write(line);
  return opened("--log_target", target, () => {
    appendFileSync(target, "");
    return (line) => appendFileSync(target, line);
  });
}

function rotated(flags: LogFlags): ((line: string) => void)[] {
  const path = flags.log_rotate ?? "";
  if (path === "") return [];
  const limits = {
    maxBytes: MB * numberOf("--log_rotate_max_size", flags.log_rotate_max_size, DEFAULTS.maxSize),
    maxAgeMs: DAY_MS * numberOf("--log_rotate_max_age", flags.log_rotate_max_age, DEFAULTS.maxAge),
    maxBackups: numberOf("--log_rotate_max_backups", flags.log_rotate_max_backups, DEFAULTS.maxBackups),
  };
  return [opened("--log_rotate", path, () => rotatingFile(path, limits))];
}

function numberOf(flag: string, text: string | undefined, fallback: number): number {
  if (text === undefined || /^\d+$/.test(text)) return text === undefined ? fallback : Number(text);
  throw new MeshError("LOG_FLAGS_INVALID", `${flag}: must be a whole number, not "${text}"`);
}

function opened(flag: string, path: string, open: () => (line: string) => void): (line: string) => void {
  try {
    return open();
  } catch (cause) {
    throw new MeshError("LOG_UNWRITABLE", `${flag}: cannot write to ${path}`, { cause });
  }
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
