/** Flags without a value that Go's programs also take as `--flag=true` and `--flag=false`. */
const SWITCHES: ReadonlySet<string> = new Set(["--log_as_json", "--profiling"]);

/** Rewrites them to the forms without a value; those that are on by default have one for off. */
export function goSwitches(args: readonly string[]): string[] {
  return args.flatMap((arg) => {
    const [name = "", value] = arg.split("=");
    if (value === undefined || !SWITCHES.has(name)) return [arg];
    if (/^(1|t|true)$/i.test(value)) return [name];
    return name === "--profiling" ? ["--no-profiling"] : [];
  });
}
