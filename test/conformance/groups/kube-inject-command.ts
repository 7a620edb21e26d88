/** The command kube-inject as people call it: flags and files in, text out. */
import { join } from "node:path";
import { CommanderError } from "commander";
import { kubeInjectCommand } from "#cli/kube-inject/kube-inject-command.ts";
import type { Terminal } from "#cli/terminal/terminal.ts";
import { styleFor } from "#lib/print/style.ts";
import { compareText } from "../compare.ts";
import { type Group, type Outcome, readJson, readText } from "../harness.ts";

interface CommandCase {
  readonly name: string;
  readonly cmd: string;
  readonly args: readonly string[];
  readonly expected: string | null;
  readonly wantError: boolean;
}

export const kubeInjectOutput: Group = {
  name: "kube-inject command",
  cases: async (folder) => {
    const file = await readJson<{ readonly cases: readonly CommandCase[] }>(folder, "istioctl/cases.json");
    const cases = (file?.cases ?? []).filter(({ cmd }) => cmd === "kube-inject");
    return cases.map((one) => ({ name: `${one.name} ${one.args.join(" ")}`, check: () => check(folder, one) }));
  },
};

async function check(folder: string, { args, expected, wantError }: CommandCase): Promise<Outcome> {
  const { text, failed } = await run(args.map((arg) => (arg.startsWith("-") ? arg : join(folder, arg))));
  if (failed !== wantError) return { differs: () => `- error: ${wantError}\n+ error: ${failed}` };
  return expected === null ? "passed" : compareText(text, (await readText(folder, expected)) ?? "");
}

async function run(args: readonly string[]): Promise<{ readonly text: string; readonly failed: boolean }> {
  let text = "";
  const terminal: Pick<Terminal, "env" | "style" | "isScreen" | "print" | "say"> = {
    env: {},
    style: styleFor({}, {}),
    isScreen: false,
    print: (printed) => {
      text += printed;
    },
    say: () => {},
  };
  const before = process.exitCode;
  const command = kubeInjectCommand(terminal as Terminal).exitOverride();
  command.configureOutput({ writeErr: () => {} });
  try {
    await command.parseAsync(args, { from: "user" });
    return { text, failed: process.exitCode !== 0 };
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    return { text, failed: true };
  } finally {
    process.exitCode = before;
  }
}
