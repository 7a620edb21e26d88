/** A terminal that keeps what commands print and say, so that they run inside the test. */
import { join } from "node:path";
import type { Terminal } from "#cli/terminal/terminal.ts";
import { styleFor } from "#lib/print/style.ts";

const ROOT = join(import.meta.dirname, "../..");

/** What a command did. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface KeptTerminal extends Terminal {
  readonly ended: () => Ended;
}

/** A terminal where nobody is looking. */
export function keptTerminal(env: Terminal["env"]): KeptTerminal {
  const kept = { stdout: "", stderr: "" };
  return {
    env,
    style: styleFor({}, {}),
    isScreen: false,
    print: (text) => {
      kept.stdout += text;
    },
    say: (line) => {
      kept.stderr += `${line}\n`;
    },
    installed: { node: process.execPath, envoy: "", agentBundle: "", discoveryBundle: "" },
    program: join(ROOT, "bin/mizzen"),
    self: [],
    args: [],
    ended: () => ({ code: Number(process.exitCode ?? 0), ...kept }),
  };
}
