/** `completion SHELL`: a script that completes commands and flags, made from the program itself. */
import { Command } from "commander";

/** The words that may follow a command. */
interface Words {
  /** Empty for the program itself. */
  readonly command: string;
  readonly words: readonly string[];
  /** Those of the commands below it. */
  readonly below?: readonly Words[];
}

const SHELLS: Readonly<Record<string, (program: string, words: readonly Words[]) => string>> = {
  bash: bashScript,
  fish: fishScript,
  powershell: powershellScript,
  zsh: (program, words) => `autoload -U +X bashcompinit && bashcompinit\n${bashScript(program, words)}`,
};

/** Prints the script for one shell. Add it to the program last: it knows the commands that are there when it runs. */
export function completionCommand(
  program: Command,
  write: (text: string) => void = (text) => void process.stdout.write(text),
): Command {
  const name = program.name();
  const command = new Command("completion")
    .description("Prints a script that completes commands and flags")
    .addHelpText("after", `\nExamples:\n  source <(${name} completion bash)\n  ${name} completion fish | source`);
  for (const [shell, script] of Object.entries(SHELLS)) {
    command
      .command(shell)
      .description(`Prints the script for ${shell}`)
      .addHelpText("after", `\nExamples:\n  ${name} completion ${shell}`)
      .option("--no-descriptions", "disable completion descriptions, of which there are none")
      .action(() => write(script(program.name(), wordsOf(program))));
  }
  return command;
}

/** The script for a shell. */
export function completionScript(shell: "bash" | "zsh", program: Command): string {
  return SHELLS[shell]?.(program.name(), wordsOf(program)) ?? "";
}

function wordsOf(program: Command): readonly Words[] {
  const top = wordsOfCommand(program);
  return [{ ...top, command: "", below: [] }, ...(top.below ?? [])];
}

/** Also by the short names of commands, which are not proposed themselves. */
function wordsOfCommand(command: Command): Words {
  const help = command.createHelp();
  const flags = help.visibleOptions(command).flatMap(({ long }) => long ?? []);
  const children = help.visibleCommands(command).filter((child) => child.name() !== "help");
  const below = children.flatMap((child) => {
    const words = wordsOfCommand(child);
    return [words, ...child.aliases().map((alias) => ({ ...words, command: alias }))];
  });
  return { command: command.name(), words: [...children.map((child) => child.name()), ...flags], below };
}

function bashScript(program: string, words: readonly Words[]): string {
  const name = `_${program.replaceAll("-", "_")}`;
  const line = (pattern: string, { words: list }: Words) => `    ${pattern}) words="${list.join(" ")}" ;;`;
  const cases = words.flatMap((one) => {
    if (one.command === "") return [];
    const below = (one.below ?? []).map((child) => line(`"${one.command} ${child.command}"`, child));
    return [...below, line(`"${one.command} "*`, one)];
  });
  const own = words.filter(({ command }) => command === "").map((one) => line("*", one));
  return `${name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words
  case "\${COMP_WORDS[1]} \${COMP_WORDS[2]}" in
${[...cases, ...own].join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F ${name} ${program}
`;
}

function fishScript(program: string, words: readonly Words[]): string {
  const lines = words.flatMap(({ command, words: list }) => {
    const condition = command === "" ? "__fish_use_subcommand" : `__fish_seen_subcommand_from ${command}`;
    return list.map((word) => {
      const what = word.startsWith("--") ? `-l ${word.slice(2)}` : `-a ${word}`;
      return `complete -c ${program} -f -n "${condition}" ${what}`;
    });
  });
  return `${lines.join("\n")}\n`;
}

function powershellScript(program: string, words: readonly Words[]): string {
  const entries = words.map(
    ({ command, words: list }) => `    '${command}' = @(${list.map((word) => `'${word}'`).join(", ")})`,
  );
  return `Register-ArgumentCompleter -Native -CommandName '${program}' -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @{
${entries.join("\n")}
  }
  $command = if ($commandAst.CommandElements.Count -gt 1) { $commandAst.CommandElements[1].ToString() } else { '' }
  if (-not $words.ContainsKey($command)) { $command = '' }
  $words[$command] | Where-Object { $_ -like "$wordToComplete*" }
}
`;
}
