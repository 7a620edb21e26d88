/**
 * Brings the rules of a network namespace to what is wanted. Each table changes at once; when a later one fails, those
 * before it are put back, so the namespace has either all rules or is as it was.
 */
import type { Logger } from "#lib/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { Backend } from "./backend.ts";
import type { Commands } from "./commands.ts";
import { type Reconciliation, reconcile } from "./reconcile.ts";
import { addRoutes, allRouteSteps, removeRoutes, routeSteps } from "./routes.ts";
import type { Family, Rule } from "./rule.ts";
import { formatRule, ruleLine } from "./rule-text.ts";
import { captureRules } from "./rules/capture-rules.ts";
import { parseSaved } from "./saved.ts";
import type { CaptureSettings } from "./settings.ts";

export interface ApplyInput {
  readonly settings: CaptureSettings;
  /** IPv6 is left out where its programs are missing. */
  readonly backends: readonly Backend[];
  readonly commands: Commands;
  readonly log: Logger;
  /** Replace rules that are in place already. */
  readonly force?: boolean;
  /** Leave addresses and routes alone. */
  readonly withoutRoutes?: boolean;
}

/** A family's rules before and what is to be done about them. */
interface Step extends Reconciliation {
  readonly backend: Backend;
  readonly before: string;
}

const FAMILY_NAMES: Readonly<Record<Family, string>> = { v4: "IPv4", v6: "IPv6" };

/** Makes the rules; those of earlier runs are replaced where they differ. */
export async function applyCapture(input: ApplyInput): Promise<void> {
  const { settings, log } = input;
  const steps = await planSteps(input, (family) => captureRules(settings, family));
  const residue = steps.some((step) => step.residue);
  const due = steps.filter((step) => step.text !== "" && (!step.inPlace || input.force));
  if (due.length === 0) log.info("The rules are in place already");
  else
    log.info(residue ? "Rules of an earlier run differ: replacing them" : "No rules of an earlier run: applying all");
  await restoreAll(input, due);
  if (input.withoutRoutes) log.info("Addresses and routes are not changed in dry-run mode");
  else await bringRoutes(input, { due, residue });
}

/** Removes our rules, chains, addresses and routes, and nothing else. */
export async function cleanCapture(input: ApplyInput): Promise<void> {
  const steps = await planSteps(input, () => []);
  await restoreAll(
    input,
    steps.filter((step) => step.text !== ""),
  );
  if (!input.withoutRoutes) await removeRoutes(input.commands, allRouteSteps(input.settings));
}

/** The state after a run, for people to look at. */
export async function logFinalState({ settings, backends, commands, log }: ApplyInput): Promise<void> {
  for (const backend of backends) {
    if (backend.family === "v6" && !settings.ipv6) continue;
    const { code, stdout } = await commands.run(backend.save, []);
    if (code === 0) log.info(`Final iptables state (${FAMILY_NAMES[backend.family]}):\n${stdout}`);
  }
}

async function planSteps(input: ApplyInput, wanted: (family: Family) => readonly Rule[]): Promise<readonly Step[]> {
  const { settings, backends, commands, log } = input;
  const steps: Step[] = [];
  for (const backend of backends) {
    const { code, stdout, stderr } = await commands.run(backend.save, []);
    if (code !== 0) throw new MeshError("CAPTURE_FAILED", `Cannot read the rules with ${backend.save}: ${stderr}`);
    const rules = wanted(backend.family);
    const known = captureRules(settings, backend.family).map(ruleLine);
    for (const rule of rules) log.debug(formatRule(rule), { table: rule.table, why: rule.why });
    steps.push({ backend, before: stdout, ...reconcile(parseSaved(stdout), rules.map(ruleLine), known) });
  }
  return steps;
}

async function restoreAll(input: ApplyInput, steps: readonly Step[]): Promise<void> {
  for (const [index, { backend, text }] of steps.entries()) {
    input.log.info(`Running iptables restore with: ${backend.restore} and the following input:\n${text.trimEnd()}`);
    const { code, stderr } = await input.commands.run(backend.restore, ["--noflush", ...waitForLock(backend)], text);
    if (code === 0) continue;
    await putBack(input, steps.slice(0, index + 1));
    throw new MeshError("CAPTURE_FAILED", `Cannot apply the rules with ${backend.restore}: ${stderr}`);
  }
}

async function bringRoutes(input: ApplyInput, done: { due: readonly Step[]; residue: boolean }): Promise<void> {
  const { settings, commands } = input;
  const wanted = routeSteps(settings);
  try {
    await addRoutes(commands, wanted);
  } catch (error) {
    await putBack(input, done.due);
    throw error;
  }
  if (!done.residue) return;
  const keep = new Set(wanted.map((step) => step.add.join(" ")));
  await removeRoutes(
    commands,
    allRouteSteps(settings).filter((step) => !keep.has(step.add.join(" "))),
  );
}

/** Tables that were not there before are emptied: without `--noflush` a section replaces its table. */
async function putBack({ commands, log }: ApplyInput, steps: readonly Step[]): Promise<void> {
  for (const { backend, before, text } of steps) {
    const old = parseSaved(before);
    const fresh = [...parseSaved(text).keys()].filter((table) => !old.has(table));
    const input = `${before}${fresh.map((table) => `*${table}\nCOMMIT\n`).join("")}`;
    const { code, stderr } = await commands.run(backend.restore, ["--counters", ...waitForLock(backend)], input);
    if (code !== 0) log.error(`Cannot put back the ${FAMILY_NAMES[backend.family]} rules`, { error: stderr });
  }
}

function waitForLock(backend: Backend): readonly string[] {
  return backend.legacy ? ["--wait=30"] : [];
}
