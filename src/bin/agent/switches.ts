import { MeshError } from "#lib/mesh-error.ts";

/** Flags without a value that Go's programs also take as `--flag=true` and `--flag=false`. */
// biome-ignore format: a list of names
const SWITCHES: ReadonlySet<string> = new Set([
  "--log_as_json", "--profiling", "--short", "--all", "--bash", "--html_fragment_with_front_matter", "--man",
  "--markdown", "--yaml", "--zsh",
]);

/** Rewrites them to the forms without a value; those that are on by default have one for off. */
export function goSwitches(args: readonly string[]): string[] {
  return args.flatMap((arg) => {
    const [name = "", value] = arg.split("=");
    if (value === undefined || !SWITCHES.has(name)) return [arg];
    if (/^(1|t|true)$/i.test(value)) return [name];
    if (!/^(0|f|false)$/i.test(value))
      throw new MeshError("FLAG_INVALID", `invalid argument "${value}" for "${name}" flag: it must be true or false`);
    return name === "--profiling" ? ["--no-profiling"] : [];
  });
}
