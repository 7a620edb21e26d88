/** Flags without a value that Go's programs also take as `--flag=true` and `--flag=false`. */
const SWITCHES: ReadonlySet<string> = new Set(["--log_as_json", "--profiling"]);

/** Rewrites them to the form without a value. */
export function goSwitches(args: readonly string[]): string[] {
  return args.flatMap((arg) => {
    const [name = "", value] = arg.split("=");
    if (value === undefined || !SWITCHES.has(name)) return [arg];
    return /^(1|t|true)$/i.test(value) ? [name] : [];
  });
}
