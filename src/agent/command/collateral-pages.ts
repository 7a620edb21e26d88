/** Pages about a program, made from its commands. Pure. */
import type { Command, Option } from "commander";

/** A file to write. */
export interface Page {
  readonly file: string;
  readonly text: string;
}

/** What pages say besides what the commands say. */
export interface PageHeadings {
  readonly title: string;
  readonly section: string;
  readonly manual: string;
}

interface Described {
  /** `pilot-agent proxy` */
  readonly path: string;
  readonly command: Command;
}

/** One page of Markdown for each command. */
export function markdownPages(program: Command): readonly Page[] {
  return commandsOf(program).map(({ path, command }) => ({
    file: `${path.replaceAll(" ", "_")}.md`,
    text: [
      `## ${path}`,
      command.description(),
      fenced(usageOf(path, command)),
      "### Options",
      fenced(optionsOf(command).map(optionLine).join("\n")),
      ...seeAlso(path, command),
    ].join("\n\n"),
  }));
}

/** One page for `man` for each command. */
export function manPages(program: Command, { title, section, manual }: PageHeadings): readonly Page[] {
  return commandsOf(program).map(({ path, command }) => ({
    file: `${path.replaceAll(" ", "-")}.${section}`,
    text: [
      `.TH "${title}" "${section}" "" "" "${manual}"`,
      ".SH NAME",
      `${roff(path.replaceAll(" ", "-"))} \\- ${roff(command.description())}`,
      ".SH SYNOPSIS",
      `\\fB${roff(usageOf(path, command))}\\fP`,
      ".SH OPTIONS",
      ...optionsOf(command).flatMap((option) => [".TP", `\\fB${roff(option.flags)}\\fP`, roff(option.description)]),
      "",
    ].join("\n"),
  }));
}

/** One page of YAML for each command. */
export function yamlPages(program: Command): readonly Page[] {
  return commandsOf(program).map(({ path, command }) => ({
    file: `${path.replaceAll(" ", "_")}.yaml`,
    text: [
      `name: ${path}`,
      `synopsis: ${JSON.stringify(command.description())}`,
      `usage: ${JSON.stringify(usageOf(path, command))}`,
      "options:",
      ...optionsOf(command).flatMap((option) => [
        `    - name: ${(option.long ?? option.flags).replace(/^--/, "")}`,
        ...(option.short === undefined || option.short === null ? [] : [`      shorthand: ${option.short.slice(1)}`]),
        ...(option.defaultValue === undefined
          ? []
          : [`      default_value: ${JSON.stringify(String(option.defaultValue))}`]),
        `      usage: ${JSON.stringify(option.description)}`,
      ]),
      "",
    ].join("\n"),
  }));
}

/** All commands on one page of HTML, with front matter for site generators. */
export function htmlPage(program: Command, { title }: PageHeadings): Page {
  const commands = commandsOf(program);
  const front = [
    "---",
    `title: ${program.name()}`,
    `description: ${title}.`,
    `number_of_entries: ${commands.length}`,
    "---",
  ];
  const sections = commands.flatMap(({ path, command }) => [
    `<h2 id="${path.replaceAll(" ", "-")}">${html(path)}</h2>`,
    `<p>${html(command.description())}</p>`,
    `<pre class="language-bash"><code>${html(usageOf(path, command))}</code></pre>`,
    '<table class="command-flags"><thead><tr><th>Flags</th><th>Description</th></tr></thead><tbody>',
    ...optionsOf(command).map(
      (option) => `<tr><td><code>${html(option.flags)}</code></td><td>${html(option.description)}</td></tr>`,
    ),
    "</tbody></table>",
  ]);
  return { file: `${program.name()}.html`, text: `${[...front, ...sections].join("\n")}\n` };
}

/** The program and its commands, without those that are hidden. */
function commandsOf(program: Command): readonly Described[] {
  const below = ({ path, command }: Described): readonly Described[] => [
    { path, command },
    ...command
      .createHelp()
      .visibleCommands(command)
      .filter((child) => child.name() !== "help")
      .flatMap((child) => below({ path: `${path} ${child.name()}`, command: child })),
  ];
  return below({ path: program.name(), command: program });
}

function optionsOf(command: Command): readonly Option[] {
  return command.createHelp().visibleOptions(command);
}

function usageOf(path: string, command: Command): string {
  return `${path} ${command.usage()}`;
}

function optionLine({ flags, description, defaultValue }: Option): string {
  const shown = defaultValue === undefined || defaultValue === "" ? "" : ` (default ${JSON.stringify(defaultValue)})`;
  return `  ${flags.padEnd(40)} ${description}${shown}`;
}

function seeAlso(path: string, command: Command): readonly string[] {
  const names = command.commands.filter((child) => child.name() !== "help").map((child) => `${path} ${child.name()}`);
  if (names.length === 0) return [""];
  return ["### SEE ALSO", ...names.map((name) => `* [${name}](${name.replaceAll(" ", "_")}.md)`), ""];
}

function fenced(text: string): string {
  return `\`\`\`\n${text}\n\`\`\``;
}

function roff(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("-", "\\-").replace(/^\./gm, "\\&.");
}

const HTML: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;" };

function html(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => HTML[letter] ?? letter);
}
