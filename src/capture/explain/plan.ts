/** What the rules do, for people: which packet goes where, by which rule, and why. */

import type { Dialect } from "../rules/family.ts";
import { FAMILIES } from "../settings/family.ts";
import type { Family } from "../settings/rule.ts";
import type { CaptureSettings } from "../settings/settings.ts";
import { type NamedEnd, nameEnd } from "./end.ts";
import type { Packet } from "./packet.ts";
import { reason } from "./reason.ts";
import { ruleBook, type WordedRule } from "./rule-book.ts";
import { GROUPS, type Group, type Scenario, scenarios } from "./scenarios.ts";
import { walk } from "./walk.ts";

export interface Plan {
  readonly mode: CaptureSettings["mode"];
  readonly dialect: Dialect;
  readonly families: readonly FamilyPlan[];
}

export interface FamilyPlan {
  readonly family: Family;
  readonly groups: readonly { readonly group: Group; readonly flows: readonly Flow[] }[];
  /** Rules that none of these packets meets: they are about later packets of a connection, or others decide first. */
  readonly further: readonly WordedRule[];
}

/** Packets of one kind that the same rule sends to the same place. */
export interface Flow {
  readonly who: string;
  readonly verb: string;
  readonly objects: readonly string[];
  /** One such packet. */
  readonly packet: Packet;
  /** Rules that they meet, in order. */
  readonly steps: readonly WordedRule[];
  readonly end: NamedEnd;
  readonly why: string;
}

export const GROUP_TITLES: Readonly<Record<Group, string>> = {
  inbound: "Inbound: what others send to the pod",
  outbound: "Outbound: what the application sends",
  proxy: "What the proxy itself sends",
  dns: "Name resolution",
  self: "What the application sends to itself",
};

/** Families without rules are left out. */
export function explainPlan(settings: CaptureSettings, dialect: Dialect): Plan {
  const families = FAMILIES.flatMap((family) => {
    const rules = ruleBook(settings, family, dialect);
    return rules.length === 0 ? [] : [familyPlan({ settings, family, rules })];
  });
  return { mode: settings.mode, dialect, families };
}

interface FamilyInput {
  readonly settings: CaptureSettings;
  readonly family: Family;
  readonly rules: readonly WordedRule[];
}

function familyPlan({ settings, family, rules }: FamilyInput): FamilyPlan {
  const flows = scenarios(settings, family).map((scenario) => ({
    group: scenario.group,
    flow: flowOf(scenario, { settings, family, rules }),
  }));
  const met = new Set(flows.flatMap(({ flow }) => flow.steps));
  return {
    family,
    groups: GROUPS.map((group) => ({
      group,
      flows: joined(flows.filter((one) => one.group === group).map(({ flow }) => flow)),
    })),
    further: rules.filter((rule) => !met.has(rule)),
  };
}

function flowOf(scenario: Scenario, { rules, settings }: FamilyInput): Flow {
  const { who, verb, object, packet } = scenario;
  const { steps, end } = walk(rules, packet);
  return { who, verb, objects: [object], packet, steps, end: nameEnd(end, settings), why: reason(steps) };
}

/** Neighbours that differ in their object alone become one. */
function joined(flows: readonly Flow[]): readonly Flow[] {
  const result: Flow[] = [];
  for (const flow of flows) {
    const previous = result.at(-1);
    const same = previous !== undefined && keyOf(previous) === keyOf(flow);
    if (same) {
      const objects = [...previous.objects, ...flow.objects];
      result.splice(-1, 1, { ...previous, objects, steps: mergedSteps(previous.steps, flow.steps) });
    } else result.push(flow);
  }
  return result;
}

/** Both lists in one, in an order that keeps that of each. */
function mergedSteps(first: readonly WordedRule[], second: readonly WordedRule[]): readonly WordedRule[] {
  const merged = [...first];
  let at = merged.length;
  for (const step of second.toReversed()) {
    const known = merged.lastIndexOf(step);
    if (known < 0) merged.splice(at, 0, step);
    else at = known;
  }
  return merged;
}

function keyOf({ who, verb, end, why }: Flow): string {
  return JSON.stringify([who, verb, end, why]);
}
