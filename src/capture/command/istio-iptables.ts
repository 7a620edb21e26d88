/** The commands `istio-iptables` and `istio-clean-iptables`. What they do is loaded when they run: the agent pays nothing. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Command, InvalidArgumentError, Option } from "commander";
import type { Env } from "#lib/env/env-table.ts";
import { parseGoBool } from "#lib/go/go-bool.ts";
import { createLogger, type Logger, parseLogLevels } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { type GivenOptions, SWITCHES, TEXT_OPTIONS, type TextOption } from "../settings/options.ts";
import type { PrepareInput } from "../system/prepare.ts";

type Write = (line: string) => void;

/** What the commands get from the process. */
export interface CaptureProcess {
  readonly env: Env;
  /** The command line that started this program: it runs once more inside another network namespace. */
  readonly commandLine: readonly string[];
  /** Receives the log; standard output when not given. */
  readonly write?: Write;
}

/** Sets up traffic capture in the network namespace of the caller. */
export function istioIptablesCommand(input: CaptureProcess): Command {
  return captureCommand("istio-iptables", { ...input, always: {}, explains: true })
    .summary("Set up iptables rules for Istio Sidecar")
    .description("istio-iptables is responsible for setting up port forwarding for Istio Sidecar.");
}

/** Takes everything back that `istio-iptables` did; the flags are the same. */
export function istioCleanIptablesCommand(input: CaptureProcess): Command {
  return captureCommand("istio-clean-iptables", { ...input, always: { cleanupOnly: true } })
    .summary("Remove the iptables rules of Istio Sidecar")
    .description(
      "istio-clean-iptables removes the rules, chains and routes that istio-iptables made, and nothing else.",
    );
}

interface CommandInput extends CaptureProcess {
  /** Options that the command implies. */
  readonly always: GivenOptions;
  /** It has the flags that ask what rules would do. */
  readonly explains?: boolean;
}

function captureCommand(name: string, input: CommandInput): Command {
  const { env, commandLine, write = toStdout, always, explains = false } = input;
  const command = new Command(name);
  const names = new Map<string, string>();
  for (const [key, option] of [...flagsOf(TEXT_OPTIONS, textOption), ...flagsOf(SWITCHES, switchOption)]) {
    command.addOption(option);
    names.set(option.attributeName(), key);
  }
  if (explains) addExplainOptions(command);
  addLogOptions(command);
  return command.action(async (values: Record<string, unknown>) => {
    const given = Object.entries(values).flatMap(([attribute, value]) => {
      const key = names.get(attribute);
      return key === undefined ? [] : [[key, value]];
    });
    // What is explained is for another program to read, or for a file.
    const log = commandLogger(values, values.explain === undefined ? write : toStderr);
    const capture = { given: { ...Object.fromEntries(given), ...always }, env, log };
    try {
      if (values.explain !== undefined) return write(await explain(values, capture));
      refuseExplainFlags(values);
      const { runCapture } = await import("../run.ts");
      await runCapture({ ...capture, again: (namespace) => runAgainIn(namespace, commandLine) });
    } catch (error) {
      if (!(error instanceof MeshError)) throw error;
      // What the system's programs say, and what does not work, has lines.
      log.error("", {}, errorText(error));
      process.exitCode = error.code === "CAPTURE_INEFFECTIVE" ? VALIDATION_FAILED : 1;
    }
  });
}

/** What `--explain` can be told about a packet. */
const PACKET_OPTIONS = [
  new Option("--uid <user>", "With --explain: user that sends the packet (default 1000)"),
  new Option("--gid <group>", "With --explain: group that sends the packet (default: the number of --uid)"),
  new Option("--in-interface <name>", "With --explain: interface by which the packet comes in"),
  new Option("--out-interface <name>", "With --explain: interface by which the packet goes out"),
  new Option("--proto <protocol>", "With --explain: tcp (default) or udp"),
  new Option("--source <address>", "With --explain: address, with or without a port, that the packet is from"),
  new Option("--direction <direction>", "With --explain: inbound or outbound (default)"),
  new Option("--ctstate <state>", "With --explain: NEW (default), ESTABLISHED, RELATED or INVALID"),
];
const OUTPUT_OPTION = new Option(
  "--output <format>",
  "With --explain: text (default) or json, and for the plan also mermaid or svg",
);

function addExplainOptions(command: Command): void {
  command.option(
    "--explain [what]",
    "Say what the rules do, and change nothing: the plan, or the way of a packet to ADDRESS:PORT",
  );
  for (const option of [OUTPUT_OPTION, ...PACKET_OPTIONS]) command.addOption(option);
}

async function explain(values: Record<string, unknown>, input: PrepareInput): Promise<string> {
  const { runExplain } = await import("../explain/run-explain.ts");
  const given = PACKET_OPTIONS.map((option) => option.attributeName()).filter((name) => values[name] !== undefined);
  return runExplain({
    ...input,
    what: values.explain === true ? "" : String(values.explain),
    output: values.output === undefined ? undefined : String(values.output),
    flags: Object.fromEntries(given.map((name) => [name, String(values[name])])),
  });
}

function refuseExplainFlags(values: Record<string, unknown>): void {
  const given = [OUTPUT_OPTION, ...PACKET_OPTIONS].find((option) => values[option.attributeName()] !== undefined);
  if (given === undefined) return;
  throw new MeshError(
    "CAPTURE_OPTIONS",
    `Cannot set up traffic capture: ${given.long} has a meaning only with --explain`,
  );
}

/** By this exit code the repair controller of Istio's CNI plugin knows pods that were started too early. */
const VALIDATION_FAILED = 126;

/** This command line once more, inside a network namespace, which a running process cannot enter. */
async function runAgainIn(networkNamespace: string, commandLine: readonly string[]): Promise<number> {
  const args = [`--net=${networkNamespace}`, "--", ...commandLine, "--network-namespace=", "--skip-rule-apply"];
  const child = spawn("nsenter", args, { stdio: "inherit" });
  const [code] = await once(child, "close");
  return Number(code ?? 1);
}

type AnyOption = Partial<Omit<TextOption, "fallback">> & { readonly help: string; readonly fallback?: string | true };

function flagsOf(
  options: Readonly<Record<string, AnyOption>>,
  make: (flags: string, option: AnyOption) => Option,
): readonly (readonly [string, Option])[] {
  return Object.entries(options).flatMap(([key, option]) => {
    if (option.flag === undefined) return [];
    const short = option.short === undefined ? "" : `-${option.short}, `;
    return [[key, make(`${short}--${option.flag}`, option)]];
  });
}

function textOption(flags: string, { fallback = "", help }: AnyOption): Option {
  const shown = fallback === "" ? help : `${help} (default "${fallback}")`;
  // Go's flags allow "-p=15001"; no value begins with "=".
  return new Option(`${flags} <value>`, shown).argParser((text) => text.replace(/^=/, ""));
}

function switchOption(flags: string, { help, fallback }: AnyOption): Option {
  const shown = fallback ? `${help} (default true)` : help;
  return new Option(`${flags} [bool]`, shown).preset("true").argParser((text) => {
    const value = parseGoBool(text.replace(/^=/, ""));
    if (value === undefined) throw new InvalidArgumentError("It must be true or false.");
    return value;
  });
}

function addLogOptions(command: Command): void {
  command
    .option("--log_as_json", "Write the log as JSON")
    .option("--log_output_level <levels>", "Lowest level to write, by scope, such as default:info", "default:info")
    .option("--log_caller <scopes>", "Accepted, without effect")
    .option("--log_stacktrace_level <levels>", "Accepted, without effect")
    .option("--log_target <path...>", "Accepted, without effect: the log goes to stdout")
    .option("--vklog <level>", "Accepted, without effect");
}

function commandLogger(values: Record<string, unknown>, write: Write): Logger {
  const { levels, problems } = parseLogLevels(String(values.log_output_level));
  const log = createLogger({
    write,
    json: values.log_as_json === true,
    levels,
  });
  for (const problem of problems) log.warn(problem);
  return log;
}

function toStderr(line: string): void {
  process.stderr.write(line);
}

function toStdout(line: string): void {
  process.stdout.write(line);
}
