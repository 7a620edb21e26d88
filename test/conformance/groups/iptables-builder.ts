/** Rules to text: as single commands, and for iptables-restore. */
import { join } from "node:path";
import { formatCommands, formatRestore } from "#capture/iptables/restore.ts";
import type { RuleLine } from "#capture/iptables/rule-text.ts";
import { compareText, firstOf } from "../compare.ts";
import { type Case, type Group, readJson, readText } from "../harness.ts";

interface Operation {
  /** `AppendRuleV4`, `InsertRuleV6` ... */
  readonly op: string;
  /** The cases use made-up tables as well. */
  readonly table: string;
  readonly chain: string;
  readonly position?: number;
  readonly params: readonly string[];
}

interface Expected {
  readonly rules: string;
  readonly restore: string;
}

interface BuilderCase {
  readonly name: string;
  readonly ops: readonly Operation[];
  readonly expectedV4: Expected | null;
  readonly expectedV6: Expected | null;
}

export const iptablesBuilder: Group = {
  name: "iptables rule builder",
  cases: async (folder) => {
    const at = join(folder, "tools/istio-iptables/pkg/builder");
    const file = await readJson<{ readonly cases: readonly BuilderCase[] }>(at, "cases.json");
    return (file?.cases ?? []).map((one) => builderCase(at, one));
  },
};

function builderCase(at: string, { name, ops, expectedV4, expectedV6 }: BuilderCase): Case {
  const check = async (family: "V4" | "V6", expected: Expected | null) => {
    const rules = ops.filter(({ op }) => op.endsWith(family)).map(lineOf);
    const text = async (file: string | undefined) => (file === undefined ? "" : ((await readText(at, file)) ?? ""));
    return firstOf([
      compareText(formatCommands(rules).join("\n"), await text(expected?.rules)),
      compareText(formatRestore(rules), await text(expected?.restore)),
    ]);
  };
  return { name, check: async () => firstOf([await check("V4", expectedV4), await check("V6", expectedV6)]) };
}

function lineOf({ table, chain, position, params }: Operation): RuleLine {
  return { table, chain, position, spec: params.join(" ") };
}
