/** What every command of `mizzen` gets from its process. */
import { dirname, join, resolve } from "node:path";
import { ignoreLostReaders } from "#lib/command/lost-readers.ts";
import { type Style, styleFor } from "#lib/print/style.ts";
import type { InstalledPrograms } from "#standalone/up/preflight.ts";

export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly style: Style;
  /** Somebody looks at the results as they come. */
  readonly isScreen: boolean;
  /** Results. */
  print(text: string): void;
  /** Everything else. */
  say(line: string): void;
  readonly installed: InstalledPrograms;
  /** The command that a person runs. */
  readonly program: string;
  /** Command line of this program without its arguments. */
  readonly self: readonly string[];
  readonly args: readonly string[];
}

/** Back to the upper left corner of the screen, clearing what was there. */
export const CLEAR = "\u001b[H\u001b[2J";

/** The terminal of a process. */
export function terminalOf({ env, argv, stdout, stderr, execPath, execArgv }: NodeJS.Process): Terminal {
  ignoreLostReaders();
  // A person who became root may still have a PATH without the folders of root's tools.
  env.PATH = [env.PATH ?? "", "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"].join(":");
  const [, entry = "", ...args] = argv;
  return {
    env,
    style: styleFor(stdout, env),
    isScreen: stdout.isTTY === true,
    print: (text) => void stdout.write(text),
    say: (line) => void stderr.write(`${line}\n`),
    installed: installedPrograms(entry, env),
    program: join(rootOf(entry), "bin/mizzen"),
    self: [execPath, ...execArgv, entry],
    args,
  };
}

/** Programs lie beside the bundle that runs; run from its source, in the checkout's `dist`. */
function installedPrograms(entry: string, env: Terminal["env"]): InstalledPrograms {
  const root = rootOf(entry);
  const bundles = entry.endsWith(".ts") ? join(root, "dist") : dirname(entry);
  return {
    node: process.execPath,
    envoy: env.ENVOY || join(root, ".cache/envoy"),
    agentBundle: join(bundles, "pilot-agent.cjs"),
    discoveryBundle: join(bundles, "pilot-discovery.cjs"),
  };
}

/** The folder of the checkout or the installation. */
function rootOf(entry: string): string {
  return entry.endsWith(".ts") ? resolve(entry, "../../..") : resolve(entry, "../..");
}
