/** What the scripts in bin/ run Node with: whatever else starts the same program is compared with them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const scriptOf = (program: string) => readFileSync(join(import.meta.dirname, "../../bin", program), "utf8");

/** Node's flags in a command. */
export function nodeFlags(command: string): string[] {
  return [...command.matchAll(/(?<=\s|^)--[\w=-]+/g)].map(([flag]) => flag);
}

/** Node's flags of `bin/PROGRAM`. */
export function scriptFlags(program: string): string[] {
  return nodeFlags(/^exec .*$/m.exec(scriptOf(program))?.[0] ?? "");
}

/** The environment that `bin/PROGRAM` sets where its caller does not. */
export function scriptEnvironment(program: string): Record<string, string> {
  const defaults = scriptOf(program).matchAll(/^(\w+)="\$\{\1:-(.*)\}"$/gm);
  return Object.fromEntries([...defaults].map(([, name = "", value = ""]) => [name, value]));
}
