/** `completion SHELL`: a script that completes commands and flags, made from the program itself. */
import { Command } from "commander";

/** The words that may follow a command. */
interface Words {
  /** Empty for the program itself. */
  readonly command: string;
  readonly words: readonly string[];
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
  const command = new Command("completion").description("Prints a script that completes commands and flags");
  for (const [shell, script] of Object.entries(SHELLS)) {
    command
      .command(shell)
      .description(`Prints the script for ${shell}`)
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
  const flags = (command: Command) =>
    command
      .createHelp()
      .visibleOptions(command)
      .flatMap(({ long }) => long ?? []);
  const commands = program.commands.filter((command) => command.name() !== "help");
  return [
    { command: "", words: [...commands.map((command) => command.name()), ...flags(program)] },
    ...commands.map((command) => ({
      command: command.name(),
      words: [...command.commands.map((child) => child.name()), ...flags(command)],
    })),
  ];
}

function bashScript(program: string, words: readonly Words[]): string {
  const name = `_${program.replaceAll("-", "_")}`;
  const cases = words.map(
    ({ command, words: list }) => `    ${command === "" ? "*" : command}) words="${list.join(" ")}" ;;`,
  );
  return `${name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words
  case "\${COMP_WORDS[1]}" in
${[...cases.slice(1), ...cases.slice(0, 1)].join("\n")}
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
