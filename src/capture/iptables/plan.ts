/** What is to be done with iptables so that exactly the wanted rules are there. */
import type { Logger } from "#lib/log/log.ts";
import type { Rule } from "../settings/rule.ts";
import type { Commands } from "../system/commands.ts";
import { failure, LOCK_WAIT_SECONDS } from "../system/failure.ts";
import type { Step } from "../system/steps.ts";
import type { FoundBackend } from "./backend.ts";
import { ownMarks, reconcile } from "./reconcile.ts";
import { formatCommands } from "./restore.ts";
import { type RuleLine, ruleLine } from "./rule-text.ts";
import { formatSaved, parseSaved } from "./saved.ts";

export interface IptablesInput {
  readonly commands: Commands;
  readonly log: Logger;
  /** `nft` works, so tables that are left empty can be removed. */
  readonly nft: boolean;
  /** Show rules as single commands. */
  readonly asCommands: boolean;
}

export interface Plan {
  /** Something of an earlier run is there. */
  readonly residue: boolean;
  /** What is there is exactly what is wanted. */
  readonly inPlace: boolean;
  /** Undefined when there is nothing to do, not even by force. */
  readonly step: Step | undefined;
  /** Packet marks of an earlier run. */
  readonly marks: readonly number[];
}

/** Rules that are `known` are ours wherever they stand. */
export function planIptables(
  input: IptablesInput,
  found: FoundBackend,
  rules: { readonly wanted: readonly Rule[]; readonly known: readonly Rule[] },
): Plan {
  const state = parseSaved(found.saved);
  const wanted = rules.wanted.map(ruleLine);
  const { residue, inPlace, text } = reconcile(state, wanted, rules.known.map(ruleLine));
  const marks = [...ownMarks(state.get("mangle") ?? new Map())];
  const step = text === "" ? undefined : restoreStep(input, found, { text, wanted });
  return { residue, inPlace, step, marks };
}

interface Change {
  readonly text: string;
  readonly wanted: readonly RuleLine[];
}

function restoreStep(input: IptablesInput, { backend, saved }: FoundBackend, { text, wanted }: Change): Step {
  const { commands, log } = input;
  const wait = backend.kind === "legacy" ? [`--wait=${LOCK_WAIT_SECONDS}`] : [];
  const touched = [...parseSaved(text).keys()];
  const emptyTables = async () => {
    if (input.nft && backend.kind === "nft") await removeEmptyTables(input.commands, backend.family, touched);
  };
  return {
    run: async () => {
      const shown = input.asCommands ? formatCommands(wanted).join("\n") : text.trimEnd();
      log.info(`Running iptables restore with: ${backend.restore} and the following input:`, {}, `\n${shown}`);
      const result = await commands.run(backend.restore, ["--noflush", ...wait], text);
      if (result.code !== 0) {
        const attempt = `Cannot apply the rules with ${backend.restore}`;
        throw failure(attempt, { ...result, program: backend.restore, input: text });
      }
      await emptyTables();
    },
    // Without `--noflush` a section replaces its table as a whole; tables that nobody changed are left alone.
    undo: async () => {
      const args = ["--counters", ...wait];
      const { code, stderr } = await commands.run(backend.restore, args, formatSaved(saved, touched));
      if (code !== 0) log.error(`Cannot put the rules back with ${backend.restore}`, { error: stderr });
      await emptyTables();
    },
  };
}

/** Tables without a rule, a chain of somebody's or a policy: as good as none, and there was none before. */
async function removeEmptyTables(commands: Commands, family: "v4" | "v6", tables: readonly string[]): Promise<void> {
  for (const table of tables) {
    const name = [family === "v4" ? "ip" : "ip6", table];
    const { code, stdout } = await commands.run("nft", ["list", "table", ...name]);
    const chains = /^table \S+ \S+ \{\n(\tchain [A-Z]+ \{\n\t\ttype [^\n]* policy accept;\n\t\}\n|\n)*\}\n$/;
    if (code === 0 && chains.test(stdout.replaceAll(/^#.*\n/gm, ""))) {
      await commands.run("nft", ["delete", "table", ...name]);
    }
  }
}
