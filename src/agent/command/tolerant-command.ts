import { Command } from "commander";

/**
 * A command that ignores flags it does not know, in Go's way: with the word behind them, which is taken for their value
 * unless that stands behind `=` or is a flag itself.
 */
export class TolerantCommand extends Command {
  override parseOptions(args: string[]): ReturnType<Command["parseOptions"]> {
    return super.parseOptions(this.#known(args));
  }

  #known(args: readonly string[]): string[] {
    const known: string[] = [];
    for (let at = 0; at < args.length; at++) {
      const word = args[at] ?? "";
      if (word === "--") return [...known, ...args.slice(at)];
      const [name = ""] = word.split("=", 1);
      const option = this.options.find(({ short, long }) => name === short || name === long);
      if (!word.startsWith("-") || word === "-" || option !== undefined || HELP.has(name)) {
        known.push(word);
        // The value of a flag may look like anything.
        if (option?.required && name === word && at + 1 < args.length) known.push(args[++at] ?? "");
      } else if (name === word && args[at + 1]?.startsWith("-") === false) at++;
    }
    return known;
  }
}

const HELP: ReadonlySet<string> = new Set(["-h", "--help"]);
