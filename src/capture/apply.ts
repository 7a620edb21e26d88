/**
 * Brings the rules of a network namespace to what is wanted. Each table changes at once; when something later fails,
 * what was done before it is put back, so the namespace has either all rules and routes or is as it was.
 */
import type { Logger } from "#lib/log/log.ts";
import { type Plan, planIptables } from "./iptables/plan.ts";
import { formatRemovals } from "./iptables/restore.ts";
import { formatRule, ruleLine } from "./iptables/rule-text.ts";
import type { Machine } from "./machine.ts";
import { type InetRule, inetRules } from "./nftables/inet-rules.ts";
import { ownTables } from "./nftables/listing.ts";
import { planNft, tryNft } from "./nftables/plan.ts";
import { formatNftRule, formatRemoval } from "./nftables/ruleset.ts";
import { captureRules } from "./rules/capture-rules.ts";
import { FAMILY_NAMES } from "./settings/family.ts";
import type { Family, Rule } from "./settings/rule.ts";
import type { CaptureSettings } from "./settings/settings.ts";
import type { Commands } from "./system/commands.ts";
import { addRoute, leftRoutes, neededRoutes, type Route, removeRoute, sameRoute } from "./system/routes.ts";
import { runSteps, type Step } from "./system/steps.ts";

export interface ApplyInput {
  readonly settings: CaptureSettings;
  /** What is there now. */
  readonly machine: Machine;
  readonly commands: Commands;
  readonly log: Logger;
  /** Replace rules that are in place already. */
  readonly force?: boolean;
  /** The commands change nothing, and nothing is known of what is there; addresses and routes are left alone. */
  readonly dryRun?: boolean;
  /** Show rules as single commands instead of the text for iptables-restore. */
  readonly asCommands?: boolean;
}

/** Makes the rules; those of earlier runs are replaced where they differ. */
export async function applyCapture(input: ApplyInput): Promise<void> {
  const { settings, log } = input;
  const { dialect } = input.machine;
  const iptables = planBackends(input, (family) => (dialect === "iptables" ? captureRules(settings, family) : []));
  const nft = planNftables(input, dialect === "nftables" ? inetRules(settings) : []);
  const plans = dialect === "iptables" ? [...iptables, ...nft] : [...nft, ...iptables];
  const residue = plans.some((plan) => plan.residue);
  const due = plans.filter((plan) => !plan.inPlace || input.force).flatMap(({ step }) => step ?? []);
  if (due.length === 0) log.info("The rules are in place already");
  else
    log.info(residue ? "Rules of an earlier run differ: replacing them" : "No rules of an earlier run: applying all");
  if (input.dryRun) log.info("Addresses and routes are not changed in dry-run mode");
  const needed = neededRoutes(settings);
  const adds = needed.map((route) => addRoute(input.commands, route));
  const removals = residue ? await routeRemovals(input, plans, needed) : [];
  await runSteps(input.dryRun ? due : [...due, ...adds, ...removals]);
  await input.machine.memory?.remember(dialect === "iptables" ? settings.virtualInterfaces : []);
}

/** Removes our rules, chains, addresses and routes, and nothing else. */
export async function cleanCapture(input: ApplyInput): Promise<void> {
  if (input.dryRun) return showRemoval(input);
  const plans = [...planBackends(input, () => []), ...planNftables(input, [])];
  const steps = plans.flatMap(({ step }) => step ?? []);
  await runSteps([...steps, ...(await routeRemovals(input, plans, []))]);
  await input.machine.memory?.remember([]);
}

/** All that a run with these settings would have made. */
async function showRemoval({ settings, machine, commands }: ApplyInput): Promise<void> {
  if (machine.dialect === "nftables") {
    await commands.run("nft", ["-f", "-"], formatRemoval().join("\n"));
    return;
  }
  for (const [family, program] of [
    ["v4", "iptables"],
    ["v6", "ip6tables"],
  ] as const) {
    const lines = formatRemovals(captureRules(settings, family).map(ruleLine));
    for (const line of lines) await commands.run(program, line.split(" "));
  }
}

/** The state after a run, for people to look at. */
export async function logFinalState({ settings, machine, commands, log }: ApplyInput): Promise<void> {
  if (machine.dialect === "nftables") {
    const listing = await tryNft(commands);
    if (listing !== undefined) log.info("Final nftables state:", {}, `\n${[...ownTables(listing).values()].join("")}`);
    return;
  }
  for (const { backend, stale } of machine.backends) {
    if (stale || (backend.family === "v6" && !settings.ipv6)) continue;
    const { code, stdout } = await commands.run(backend.save, []);
    if (code === 0) log.info(`Final iptables state (${FAMILY_NAMES[backend.family]}):`, {}, `\n${stdout}`);
  }
}

function planBackends(input: ApplyInput, rulesOf: (family: Family) => readonly Rule[]): readonly Plan[] {
  const { commands, log, asCommands = false, machine } = input;
  const remembered = [...(machine.virtualInterfaces ?? []), ...input.settings.virtualInterfaces];
  // Whatever an earlier run has made is known, also for a family that is not wanted now.
  const known = { ...input.settings, virtualInterfaces: remembered, ipv6: true };
  const nft = machine.nftListing !== undefined;
  return machine.backends.map((found) => {
    const { family } = found.backend;
    const wanted = found.stale ? [] : rulesOf(family);
    for (const rule of wanted) log.debug(formatRule(rule), { table: rule.table, why: rule.why });
    return planIptables({ commands, log, nft, asCommands }, found, { wanted, known: captureRules(known, family) });
  });
}

function planNftables(input: ApplyInput, wanted: readonly InetRule[]): readonly Plan[] {
  const { nftListing } = input.machine;
  for (const rule of wanted) input.log.debug(formatNftRule(rule), { table: rule.table, why: rule.why });
  return nftListing === undefined ? [] : [planNft(input, nftListing, wanted)];
}

/** Routes that earlier runs have left, but for those still needed. */
async function routeRemovals(
  { settings, commands, dryRun }: ApplyInput,
  plans: readonly Plan[],
  needed: readonly Route[],
): Promise<readonly Step[]> {
  if (dryRun) return [];
  const marks = new Set([settings.tproxyMark, ...plans.flatMap((plan) => plan.marks)]);
  const left = await leftRoutes(commands, marks);
  return left
    .filter((route) => !needed.some((other) => sameRoute(route, other)))
    .map((route) => removeRoute(commands, route));
}
