/** The plan as text. */
import { FAMILY_NAMES } from "../../settings/family.ts";
import { type FamilyPlan, type Flow, GROUP_TITLES, type Plan } from "../plan.ts";
import { formatSteps } from "./steps-text.ts";

export function formatPlan({ mode, dialect, families }: Plan): string {
  const missing = families.some(({ family }) => family === "v6") ? [] : ["IPv6 is not captured: it has no rules.", ""];
  return [...families.map((family) => formatFamily(family, `${dialect}, mode ${mode}`)), ...missing].join("\n");
}

function formatFamily({ family, groups, further }: FamilyPlan, how: string): string {
  const title = `${FAMILY_NAMES[family]} by ${how}`;
  const lines = [title, "=".repeat(title.length), ""];
  for (const { group, flows } of groups) {
    if (flows.length > 0) lines.push(GROUP_TITLES[group], ...flows.flatMap(formatFlow), "");
  }
  if (further.length > 0) {
    lines.push(
      "Rules that none of these packets meets: for later packets of a connection, or others decide first",
      ...formatSteps(further, "  "),
      "",
    );
  }
  return lines.join("\n");
}

function formatFlow({ who, verb, objects, end, why, steps }: Flow): readonly string[] {
  return [`  ${who} ${verb} ${listOf(objects)}`, `    -> ${end.label}: ${why}`, ...formatSteps(steps, "       ")];
}

/** `a, b, or c` */
export function listOf(parts: readonly string[]): string {
  return new Intl.ListFormat("en", { type: "disjunction" }).format(parts);
}
