/** Objects of the user's API: accepted or refused, with or without a warning. */
import { glob } from "node:fs/promises";
import { join } from "node:path";
import { standingOf } from "#config/kinds/kinds.ts";
import { parseObject } from "#config/kinds/parse-object.ts";
import type { Problem } from "#config/schema/problem.ts";
import { type Case, type Group, type Outcome, readJson } from "../harness.ts";

interface ValidationCase {
  readonly id: string;
  readonly kind: string;
  readonly object: { readonly apiVersion: string };
  readonly valid: boolean;
  /** Texts are informative. */
  readonly error?: string;
  readonly warning?: string;
}

export const configValidation: Group = {
  name: "config validation",
  cases: async (folder) => {
    const at = join(folder, "pkg/config/validation/cases");
    const cases: Case[] = [];
    for await (const name of glob("*.json", { cwd: at })) {
      const file = await readJson<{ readonly cases: readonly ValidationCase[] }>(at, name);
      for (const one of file?.cases ?? []) cases.push({ name: `${one.kind} ${one.id}`, check: () => checkObject(one) });
    }
    return cases;
  },
};

function checkObject({ kind, object, valid, error, warning }: ValidationCase): Outcome {
  if (standingOf(object.apiVersion, kind) === "not-yet") return { leftOut: `${kind} is not checked yet` };
  const { problems } = parseObject(object);
  const ours = { valid: !some(problems, "error"), warned: some(problems, "warning") };
  if (ours.valid === valid && ours.warned === (warning !== undefined)) return "passed";
  return {
    differs: () => {
      const texts = problems.map((problem) => `+ ${problem.severity}: ${problem.field} ${problem.message}`);
      return [`- valid: ${valid}, error: ${error}, warning: ${warning}`, ...texts, JSON.stringify(object)].join("\n");
    },
  };
}

function some(problems: readonly Problem[], severity: Problem["severity"]): boolean {
  return problems.some((problem) => problem.severity === severity);
}
