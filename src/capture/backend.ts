/** The set of iptables programs to use. A machine may have two, whose rules do not see each other. */
import { MeshError } from "#lib/mesh-error.ts";
import type { CommandResult, Commands } from "./commands.ts";
import { type Family, isOurChain } from "./rule.ts";
import { parseSaved, type State } from "./saved.ts";

export interface Backend {
  readonly family: Family;
  /** `iptables-nft-save` ... */
  readonly save: string;
  readonly restore: string;
  /** Legacy programs share a lock that others may hold for a while. */
  readonly legacy: boolean;
}

export const PLAIN_BACKENDS: Readonly<Record<Family, Backend>> = {
  v4: backend("v4", ""),
  v6: backend("v6", ""),
};

/**
 * Where our rules are already; else legacy if somebody's rules are there; else nft; else what there is. Undefined when
 * none works.
 */
export async function detectBackend(commands: Commands, family: Family): Promise<Backend | undefined> {
  const usable = await usableBackends(commands, family);
  const found =
    usable.find(({ state }) => hasOurs(state)) ??
    usable.find(({ backend, state }) => backend.legacy && hasRules(state)) ??
    usable.find(({ backend }) => !backend.legacy) ??
    usable[0];
  return found?.backend;
}

/** All that hold rules of ours. */
export async function backendsToClean(commands: Commands, family: Family): Promise<readonly Backend[]> {
  const usable = await usableBackends(commands, family);
  return usable.filter(({ state }) => hasOurs(state)).map((one) => one.backend);
}

/** The back end that the user insists on. */
export async function forcedBackend(commands: Commands, family: Family, kind: string): Promise<Backend | undefined> {
  const candidate = backend(family, `-${kind}`);
  return (await commands.run(candidate.save, [])).code === 0 ? candidate : undefined;
}

/** Why no back end works, as a sentence. */
export async function missingBackend(commands: Commands): Promise<MeshError> {
  const result = await commands.run(PLAIN_BACKENDS.v4.save, []);
  return new MeshError("IPTABLES_MISSING", `Cannot use iptables: ${unusable(result)}`);
}

function unusable({ code, stderr }: CommandResult): string {
  if (code === 127) return "the program iptables-save is missing; install the package iptables";
  if (/permission denied|must be root/i.test(stderr)) return "needs root or the capabilities NET_ADMIN and NET_RAW";
  return stderr === "" ? `iptables-save ended with code ${code}` : stderr;
}

interface UsableBackend {
  readonly backend: Backend;
  readonly state: State;
}

/** The plain program is one of the others under a second name, so it counts only when they are missing. */
async function usableBackends(commands: Commands, family: Family): Promise<readonly UsableBackend[]> {
  const named = await tryBackends(commands, [backend(family, "-nft"), backend(family, "-legacy")]);
  return named.length > 0 ? named : tryBackends(commands, [PLAIN_BACKENDS[family]]);
}

async function tryBackends(commands: Commands, candidates: readonly Backend[]): Promise<readonly UsableBackend[]> {
  const tried = await Promise.all(
    candidates.map(async (candidate) => ({ backend: candidate, result: await commands.run(candidate.save, []) })),
  );
  return tried
    .filter(({ result }) => result.code === 0)
    .map(({ backend: one, result }) => ({ backend: one, state: parseSaved(result.stdout) }));
}

function hasOurs(state: State): boolean {
  return [...state.values()].some((chains) => [...chains.keys()].some(isOurChain));
}

function hasRules(state: State): boolean {
  return [...state.values()].some((chains) => [...chains.values()].some((rules) => rules.length > 0));
}

function backend(family: Family, suffix: string): Backend {
  const name = `${family === "v4" ? "iptables" : "ip6tables"}${suffix}`;
  return { family, save: `${name}-save`, restore: `${name}-restore`, legacy: suffix === "-legacy" };
}
