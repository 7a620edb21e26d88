/** `version`, as every Istio program has it. */
import { Command } from "commander";
import { MeshError } from "../mesh-error.ts";
import { ISTIO_VERSION, VERSION } from "../version.ts";

/** `RELEASE-PROGRAM-VERSION`, the form of Istio's `/version`: the release of Istio that is spoken comes first. */
export const VERSION_TEXT = `${ISTIO_VERSION}-mizzen-${VERSION}`;

interface VersionOptions {
  readonly short?: boolean;
  readonly output?: "yaml" | "json" | undefined;
}

/** Prints what this program is. */
export function versionCommand(write: (text: string) => void = (text) => void process.stdout.write(text)): Command {
  return new Command("version")
    .description("Prints out build version information")
    .option("-s, --short", "the version alone")
    .option("-o, --output <string>", "One of 'yaml' or 'json'.", outputFormat)
    .addHelpText("after", "\nExamples:\n  version --short\n  version -o json")
    .action((options: VersionOptions) => write(`${versionText(options)}\n`));
}

/** Also of `-o=json`, whose `=` commander leaves to us. */
function outputFormat(given: string): "yaml" | "json" | undefined {
  const format = given.replace(/^=/, "");
  if (format === "") return undefined;
  if (format === "yaml" || format === "json") return format;
  throw new MeshError("FLAG_INVALID", "--output must be 'yaml' or 'json'");
}

function versionText({ short = false, output }: VersionOptions): string {
  const info = {
    version: ISTIO_VERSION,
    program: "mizzen",
    program_version: VERSION,
    node_version: process.version,
  };
  if (output === "json") return JSON.stringify({ clientVersion: info }, undefined, 2);
  if (output === "yaml") {
    const fields = Object.entries(info).map(([name, value]) => `  ${name}: ${value}`);
    return ["clientVersion:", ...fields].join("\n");
  }
  if (short) return `client version: ${VERSION_TEXT}`;
  return `client version: version.BuildInfo{Version:"${info.version}", Program:"${info.program}", ProgramVersion:"${VERSION}", NodeVersion:"${process.version}"}`;
}
