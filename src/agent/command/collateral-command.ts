import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { completionScript } from "#lib/command/completion-command.ts";
import { makeFolder } from "#lib/files/make-folder.ts";
import { MeshError } from "#lib/mesh-error.ts";

interface CollateralOptions {
  readonly outputDir: string;
  readonly all?: boolean;
  readonly bash?: boolean;
  readonly zsh?: boolean;
  readonly man?: boolean;
  readonly markdown?: boolean;
  readonly yaml?: boolean;
  readonly html_fragment_with_front_matter?: boolean;
}

const HEADINGS = { title: "Istio Pilot Agent", section: "pilot-agent CLI", manual: "Istio Pilot Agent" };

/** `collateral`: writes pages about the program and scripts that complete its commands into a folder. */
export function collateralCommand(program: Command): Command {
  return new Command("collateral")
    .description("Generate collateral support files for this program")
    .option("--all", "Produce all supported collateral files")
    .option("--bash", "Produce bash completion files")
    .option("--html_fragment_with_front_matter", "Produce an HTML documentation file with front matter")
    .option("--man", "Produce man pages")
    .option("--markdown", "Produce markdown documentation files")
    .option("-o, --outputDir <folder>", "Directory where to generate the collateral files", ".")
    .option("--yaml", "Produce YAML documentation files")
    .option("--zsh", "Produce zsh completion files")
    .action((options: CollateralOptions) => writeCollateral(program, options));
}

async function writeCollateral(program: Command, options: CollateralOptions): Promise<void> {
  const { htmlPage, manPages, markdownPages, yamlPages } = await import("./collateral-pages.ts");
  const wants = (kind: keyof CollateralOptions) => options.all === true || options[kind] === true;
  const pages = [
    ...(wants("markdown") ? markdownPages(program) : []),
    ...(wants("man") ? manPages(program, HEADINGS) : []),
    ...(wants("yaml") ? yamlPages(program) : []),
    ...(wants("html_fragment_with_front_matter") ? [htmlPage(program, HEADINGS)] : []),
    ...(wants("bash") ? [{ file: `${program.name()}.bash`, text: completionScript("bash", program) }] : []),
    ...(wants("zsh") ? [{ file: `_${program.name()}`, text: completionScript("zsh", program) }] : []),
  ];
  try {
    makeFolder(options.outputDir);
    for (const { file, text } of pages) writeFileSync(join(options.outputDir, file), text);
  } catch (cause) {
    throw new MeshError("COLLATERAL_UNWRITABLE", `Cannot write to ${options.outputDir}`, { cause });
  }
}
