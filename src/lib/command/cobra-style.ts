/** Help and errors in the form of Go's Cobra, which Istio's users, and scripts that read them, know. */
import type { Command, CommanderError, Option } from "commander";

/** Gives a program and all its commands that form; its own flags are the "Global Flags" of the others. */
export function inCobraStyle(program: Command): Command {
  for (const command of commandsBelow(program)) {
    command
      .configureHelp({ formatHelp: (self) => helpText(self, program) })
      // Errors are written once, by whoever catches them.
      .configureOutput({ outputError: () => undefined })
      .exitOverride()
      .allowExcessArguments();
    if (command.commands.length > 0) command.helpCommand(false).action(() => helpUnlessUnknown(command));
  }
  return program.helpCommand("help [command]", "Help about any command");
}

/** Without the name of a command below it, a command explains itself; that is no error. */
function helpUnlessUnknown(command: Command): void {
  const [first = "-"] = command.args;
  if (command.parent !== null || first.startsWith("-")) command.outputHelp();
  else command.error(`error: unknown command '${first}'`, { code: "commander.unknownCommand" });
}

/** What Cobra says where its words differ from commander's. */
export function cobraMessage(error: CommanderError, program: Command): string {
  const [, quoted = ""] = /'([^']*)'/.exec(error.message) ?? [];
  if (error.code === "commander.unknownOption") return `unknown flag: ${quoted}`;
  if (error.code === "commander.optionMissingArgument")
    return `flag needs an argument: ${/--[^\s']+/.exec(error.message)?.[0] ?? quoted}`;
  if (error.code !== "commander.unknownCommand") return error.message.replace(/^error: /, "");
  const meant = program
    .createHelp()
    .visibleCommands(program)
    .map((command) => command.name())
    .filter((name) => isSimilar(quoted.toLowerCase(), name))
    .sort();
  const suggestion = meant.length === 0 ? "" : `\nDid you mean this?\n\t${meant.join("\n\t")}\n\n`;
  return `unknown command "${quoted}" for "${program.name()}"\n${suggestion}Run '${program.name()} --help' for usage.`;
}

/** Its beginning, or the name with two letters wrong at most. */
function isSimilar(word: string, name: string): boolean {
  return name.startsWith(word) || editDistance(word, name) <= 2;
}

/** Letters to add, to leave out or to replace in one word for the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1];
    for (const [index, other] of [...to].entries()) {
      const [left = 0, above = 0, corner = 0] = [next[index], row[index + 1], row[index]];
      next.push(Math.min(left + 1, above + 1, corner + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

function commandsBelow(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(commandsBelow)];
}

function helpText(command: Command, program: Command): string {
  const own = command.options.filter((option) => !program.options.some((other) => other.long === option.long));
  const path = pathOf(command);
  const commands = command.createHelp().visibleCommands(command);
  const blocks = [
    command.description(),
    `Usage:\n  ${commands.length > 0 ? `${path} [command]` : usageLine(command, path)}`,
    rows(
      "Arguments:",
      command.registeredArguments.map((argument) => [argument.name(), argument.description]),
    ),
    rows("Available Commands:", commands.map((child) => [child.name(), child.summary() || child.description()]).sort()),
    flags("Flags:", [...(command === program ? program.options : own), helpFlag(command)]),
    command === program ? "" : flags("Global Flags:", program.options),
    commands.length > 0 ? `Use "${path} [command] --help" for more information about a command.` : "",
  ];
  return `${blocks.filter((block) => block !== "").join("\n\n")}\n`;
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

function usageLine(command: Command, path: string): string {
  const words = command.usage().replace("[options]", "").trim();
  return [path, words, "[flags]"].filter((word) => word !== "").join(" ");
}

interface Flag {
  readonly short?: string | undefined;
  readonly long: string;
  readonly text: string;
}

function helpFlag(command: Command): Flag {
  return { short: "-h", long: "--help", text: `help for ${command.name()}` };
}

/** One line each, in the order of their names, whatever the width of the terminal is. */
function flags(title: string, list: readonly (Option | Flag)[]): string {
  const shown = list.flatMap((item) => ("text" in item ? [item] : item.hidden ? [] : [flagOf(item)]));
  const inOrder = shown.toSorted((a, b) => (a.long < b.long ? -1 : 1));
  return rows(
    title,
    inOrder.map(({ short, long, text }) => [`${short === undefined ? "   " : `${short},`} ${long}`, text]),
  );
}

function flagOf({ short, long, flags: spelled, description, defaultValue }: Option): Flag {
  const [, type] = /<(.*)>/.exec(spelled) ?? [];
  const preset = presetText(defaultValue);
  return {
    short: short ?? undefined,
    long: [long ?? spelled, ...(type === undefined ? [] : [type])].join(" "),
    text: preset === "" ? description : `${description} (default ${preset})`,
  };
}

/** As Go prints it; the zero value of a type is not worth a word. */
function presetText(value: unknown): string {
  if (typeof value === "string" && value !== "") return JSON.stringify(value);
  if ((typeof value === "number" && value !== 0) || value === true) return String(value);
  return "";
}

function rows(title: string, list: readonly (readonly string[])[]): string {
  if (list.length === 0) return "";
  const width = Math.max(...list.map(([name = ""]) => name.length));
  const gap = title.endsWith("Flags:") ? 3 : 1;
  return [title, ...list.map(([name = "", text = ""]) => `  ${name.padEnd(width + gap)}${text}`.trimEnd())].join("\n");
}
