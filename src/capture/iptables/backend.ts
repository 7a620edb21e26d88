/** The set of iptables programs to use. A machine may have two, whose rules do not see each other. */

import { FAMILIES } from "../settings/family.ts";
import { type Family, isOurChain } from "../settings/rule.ts";
import type { CommandResult, Commands } from "../system/commands.ts";
import { failure } from "../system/failure.ts";
import { parseSaved, type State } from "./saved.ts";

export interface Backend {
  readonly family: Family;
  /** `iptables-nft-save` ... */
  readonly save: string;
  readonly restore: string;
  /** Undefined for the plain programs, which are one of the others under a second name. */
  readonly kind: BackendKind | undefined;
}

export type BackendKind = "nft" | "legacy";

/** A back end that works. */
export interface FoundBackend {
  readonly backend: Backend;
  /** Its rules, as its save program prints them. */
  readonly saved: string;
  /** It holds rules of an earlier run and is not to get new ones. */
  readonly stale: boolean;
}

/** What the plain programs hold. Throws when they do not work. */
export async function plainBackends(commands: Commands): Promise<readonly FoundBackend[]> {
  const found: FoundBackend[] = [];
  for (const family of FAMILIES) {
    const candidate = backendOf(family, undefined);
    const result = await commands.run(candidate.save, []);
    if (result.code !== 0) throw unreadable(candidate, result);
    found.push({ backend: candidate, saved: result.stdout, stale: false });
  }
  return found;
}

/**
 * The back end for one family: the `kind` that somebody insists on; else where our rules are already; else legacy if
 * somebody's rules are there; else nft; else what there is. Others follow if they hold rules of ours. Empty when none
 * works.
 */
export async function findBackends(
  commands: Commands,
  family: Family,
  kind?: BackendKind,
): Promise<readonly FoundBackend[]> {
  const usable = await usableBackends(commands, family);
  const chosen = kind === undefined ? choose(usable) : usable.find(({ backend }) => backend.kind === kind);
  if (chosen === undefined) return [];
  const stale = usable.filter((one) => one !== chosen && hasOurs(one.state));
  return [found(chosen, false), ...stale.map((one) => found(one, true))];
}

/** All back ends of one family that hold rules of ours. */
export async function backendsWithOurs(commands: Commands, family: Family): Promise<readonly FoundBackend[]> {
  const usable = await usableBackends(commands, family);
  return usable.filter(({ state }) => hasOurs(state)).map((one) => found(one, true));
}

/** Why no back end works. */
export async function missingBackend(commands: Commands, kind?: BackendKind): Promise<Error> {
  const candidate = backendOf("v4", kind);
  return unreadable(candidate, await commands.run(candidate.save, []));
}

function unreadable({ save }: Backend, result: CommandResult): Error {
  return failure(`Cannot read the rules with ${save}`, { ...result, program: save });
}

interface UsableBackend {
  readonly backend: Backend;
  readonly saved: string;
  readonly state: State;
}

function choose(usable: readonly UsableBackend[]): UsableBackend | undefined {
  return (
    usable.find(({ state }) => hasOurs(state)) ??
    usable.find(({ backend, state }) => backend.kind === "legacy" && hasRules(state)) ??
    usable.find(({ backend }) => backend.kind !== "legacy") ??
    usable[0]
  );
}

function found({ backend, saved }: UsableBackend, stale: boolean): FoundBackend {
  return { backend, saved, stale };
}

/** The plain programs count only when the others are missing. */
async function usableBackends(commands: Commands, family: Family): Promise<readonly UsableBackend[]> {
  const named = await tryBackends(commands, [backendOf(family, "nft"), backendOf(family, "legacy")]);
  return named.length > 0 ? named : tryBackends(commands, [backendOf(family, undefined)]);
}

async function tryBackends(commands: Commands, candidates: readonly Backend[]): Promise<readonly UsableBackend[]> {
  const tried = await Promise.all(
    candidates.map(async (backend) => ({ backend, result: await commands.run(backend.save, []) })),
  );
  return tried
    .filter(({ result }) => result.code === 0)
    .map(({ backend, result }) => ({ backend, saved: result.stdout, state: parseSaved(result.stdout) }));
}

function hasOurs(state: State): boolean {
  return [...state.values()].some((chains) => [...chains.keys()].some(isOurChain));
}

function hasRules(state: State): boolean {
  return [...state.values()].some((chains) => [...chains.values()].some((rules) => rules.length > 0));
}

function backendOf(family: Family, kind: BackendKind | undefined): Backend {
  const name = `${family === "v4" ? "iptables" : "ip6tables"}${kind === undefined ? "" : `-${kind}`}`;
  return { family, save: `${name}-save`, restore: `${name}-restore`, kind };
}
