/** `mizzen manifest` and `mizzen profile`: what an installation would be, without a cluster. */
import { readFile } from "node:fs/promises";
import { Command, Option } from "commander";
import { MeshError } from "#lib/mesh-error.ts";
import { formatOutput, OUTPUT_FORMATS, type OutputFormat } from "#lib/print/output.ts";
import {
  manifestsOf,
  PROFILES_HELP,
  resolved,
  type Settings,
  withManifests,
  withSettings,
} from "../cluster/install-options.ts";
import { EXIT, finish } from "../terminal/exit-codes.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface OutputOptions {
  readonly output?: OutputFormat;
}

const MANIFEST_HELP = `
Examples:
  mizzen manifest generate --set profile=demo > mesh.yaml
  mizzen manifest diff before.yaml after.yaml`;

const PROFILE_HELP = `
Examples:
  mizzen profile list                     which there are
  mizzen profile dump demo                all values of one
  mizzen profile diff default demo        what two differ in`;

export function manifestCommand(terminal: Terminal): Command {
  return new Command("manifest")
    .description("The objects of an installation, without a cluster.")
    .addHelpText("after", MANIFEST_HELP)
    .addCommand(generateCommand(terminal))
    .addCommand(diffCommand(terminal));
}

export function profileCommand(terminal: Terminal): Command {
  return new Command("profile")
    .description("Settings that go together, by name.")
    .addHelpText("after", PROFILE_HELP)
    .addCommand(listCommand(terminal))
    .addCommand(dumpCommand(terminal))
    .addCommand(profileDiffCommand(terminal));
}

/** Prints the objects as YAML. */
export async function printManifest(options: Settings, terminal: Terminal): Promise<number> {
  const { dump } = await import("js-yaml");
  const { manifestOf } = await import("#install/manifest.ts");
  const settings = await resolved(options, terminal);
  for (const object of manifestOf(settings, (line) => terminal.say(`warning: ${line}`))) {
    terminal.print(`---\n${dump(object, { noRefs: true })}`);
  }
  return 0;
}

function generateCommand(terminal: Terminal): Command {
  return withSettings(new Command("generate").summary("print the objects of an installation"))
    .description("Prints what `mizzen install` would apply, as YAML.")
    .addHelpText(
      "after",
      `
Examples:
  mizzen manifest generate --set profile=demo | kubectl apply --server-side -f -
${PROFILES_HELP}`,
    )
    .action((options: Settings) => finish(terminal, () => printManifest(options, terminal)));
}

function diffCommand(terminal: Terminal): Command {
  return new Command("diff")
    .summary("compare two files of objects")
    .description(
      "Compares two files of objects, as `mizzen manifest generate` prints them. The exit code is 1 where they differ.",
    )
    .argument("<before>", "file")
    .argument("<after>", "file")
    .addOption(new Option("-o, --output <format>", "instead of text").choices(OUTPUT_FORMATS))
    .addHelpText(
      "after",
      `
Examples:
  mizzen manifest generate > before.yaml
  mizzen manifest generate --set profile=demo > after.yaml
  mizzen manifest diff before.yaml after.yaml`,
    )
    .action((before: string, after: string, options: OutputOptions) =>
      finish(terminal, () => printDiff({ before, after, ...options }, terminal)),
    );
}

async function printDiff(
  { before, after, output }: OutputOptions & { readonly before: string; readonly after: string },
  terminal: Terminal,
): Promise<number> {
  const { formatObjectChanges, objectChanges } = await import("#install/difference.ts");
  const changes = objectChanges(await objectsIn(before), await objectsIn(after));
  terminal.print(output === undefined ? formatObjectChanges(changes) : formatOutput(changes, output));
  return changes.length === 0 ? 0 : EXIT.failed;
}

async function objectsIn(file: string) {
  const { readObjects } = await import("#install/chart.ts");
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new MeshError("INSTALL_INVALID", `${file} cannot be read`, { cause });
  }
  return readObjects(text, file);
}

function listCommand(terminal: Terminal): Command {
  const command = new Command("list")
    .description("Lists the profiles.")
    .addOption(new Option("-o, --output <format>", "instead of text").choices(OUTPUT_FORMATS))
    .addHelpText("after", "\nExamples:\n  mizzen profile list\n  mizzen profile list -o json");
  return withManifests(command).action((options: Settings & OutputOptions) =>
    finish(terminal, async () => {
      const { profileNames } = await import("#install/settings.ts");
      const names = await profileNames(manifestsOf(options, terminal));
      const lines = names.map((name) => `    ${name}\n`).join("");
      terminal.print(options.output === undefined ? `Profiles:\n${lines}` : formatOutput(names, options.output));
      return 0;
    }),
  );
}

function dumpCommand(terminal: Terminal): Command {
  const command = withSettings(new Command("dump").argument("[profile]", "name"))
    .description("Prints all values of a profile, with those of -f and --set over them.")
    .addOption(new Option("-o, --output <format>", "form").choices(OUTPUT_FORMATS).default("yaml"))
    .addHelpText(
      "after",
      `
Examples:
  mizzen profile dump demo
  mizzen profile dump --set pilot.traceSampling=5 -o json`,
    );
  return command.action((profile: string | undefined, options: Settings & Required<OutputOptions>) =>
    finish(terminal, async () => {
      terminal.print(formatOutput(await valuesOf(profile, options, terminal), options.output));
      return 0;
    }),
  );
}

function profileDiffCommand(terminal: Terminal): Command {
  const command = new Command("diff").argument("<before>", "profile").argument("<after>", "profile");
  return withSettings(command)
    .description("Compares all values of two profiles. The exit code is 1 where they differ.")
    .addHelpText("after", "\nExamples:\n  mizzen profile diff default demo")
    .action((before: string, after: string, options: Settings) =>
      finish(terminal, async () => {
        const { unifiedHunks } = await import("#lib/text/line-diff.ts");
        const { dump } = await import("js-yaml");
        const linesOf = async (profile: string) =>
          dump(await valuesOf(profile, options, terminal), { noRefs: true, sortKeys: true })
            .trimEnd()
            .split("\n");
        const patch = unifiedHunks(await linesOf(before), await linesOf(after));
        if (patch === "") return 0;
        terminal.print(`--- ${before}\n+++ ${after}\n${patch}`);
        return EXIT.failed;
      }),
    );
}

async function valuesOf(profile: string | undefined, options: Settings, terminal: Terminal) {
  const set = profile === undefined ? options.set : [...options.set, `profile=${profile}`];
  const { values } = await resolved({ ...options, set }, terminal);
  return values;
}
