import { parseGoBool } from "#lib/go/go-bool.ts";
import { MeshError } from "#lib/mesh-error.ts";

/** Flags without a value that Go's programs also take as `--flag=true` and `--flag=false`. */
// biome-ignore format: a list of names
const SWITCHES: ReadonlySet<string> = new Set([
  "--log_as_json", "--profiling", "-s", "--short", "--all", "--bash", "--html_fragment_with_front_matter", "--man",
  "--markdown", "--yaml", "--zsh",
]);

/** Rewrites them to the forms without a value; those that are on by default have one for off. */
export function goSwitches(args: readonly string[]): string[] {
  return args.flatMap((arg) => {
    const [name = "", value] = arg.split("=");
    if (value === undefined || !SWITCHES.has(name)) return [arg];
    const isOn = parseGoBool(value);
    if (isOn === undefined)
      throw new MeshError("FLAG_INVALID", `invalid argument "${value}" for "${name}" flag: it must be true or false`);
    if (isOn) return [name];
    return name === "--profiling" ? ["--no-profiling"] : [];
  });
}

/** Flags before a command that take no value, so that the word behind them may be the command. */
const WITHOUT_VALUE: ReadonlySet<string> = new Set(["-h", "--help", "--log_as_json"]);

/** Puts the command before the flags that stand in front of it: known or not, they are read as its own, as in Go's programs. */
export function commandFirst(args: readonly string[]): string[] {
  let at = 0;
  while (args[at]?.startsWith("-") && args[at] !== "--") {
    at += args[at]?.includes("=") || WITHOUT_VALUE.has(args[at] ?? "") ? 1 : 2;
  }
  const command = args[at];
  return command === undefined || command === "--" ? [...args] : [command, ...args.toSpliced(at, 1)];
}
