/** What patches do. One that changes nothing has usually a name that is written wrong, or that this version does not generate. */
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { orderedBytes } from "./patches/recipe-tree.ts";
import { type Chosen, chosenPatches } from "./patches/select.ts";
import { planGateway, planInbound, planOutbound } from "./plan.ts";
import type { Recipe } from "./recipes/recipe.ts";
import type { Plan } from "./recipes/view-plan.ts";
import { seenBy } from "./scope/public-part.ts";
import { viewsOf } from "./views/views.ts";

/** Patches that are for some of the proxies. */
export interface PatchEffects {
  /** Those that change nothing of any of them. */
  readonly idle: readonly Chosen[];
  readonly effective: readonly Chosen[];
}

/**
 * Which patches change something, and which of those that are for some of the proxies do not. Each patch is left out once, to see
 * whether that makes a difference: that takes time, so it stops after each step for whoever has more urgent work.
 */
export function* patchEffects(snapshot: Snapshot, proxies: Iterable<MeshProxy>): Generator<undefined, PatchEffects> {
  const seen = new Set<string>();
  const idle = new Set<string>();
  const effective = new Set<string>();
  for (const proxy of proxies) {
    for (const { key, patches, plan } of patchedParts(snapshot, proxy)) {
      if (seen.has(key)) continue;
      seen.add(key);
      for (const id of patches) {
        if (effective.has(id)) continue;
        yield;
        const others = patches.filter((other) => other !== id);
        const isEffective = yield* makesDifference(plan(patches), plan(others));
        (isEffective ? effective : idle).add(id);
      }
    }
    yield;
  }
  return {
    idle: chosenPatches(snapshot, [...idle.difference(effective)]),
    effective: chosenPatches(snapshot, [...effective]),
  };
}

interface PatchedPart {
  readonly key: string;
  readonly patches: readonly string[];
  readonly plan: (patches: readonly string[]) => Plan;
}

function patchedParts(mesh: Snapshot, proxy: MeshProxy): readonly PatchedPart[] {
  const snapshot = seenBy(proxy, mesh);
  const { outbound, inbound, gateway } = viewsOf(snapshot, proxy);
  const parts: PatchedPart[] = [
    { ...outbound, plan: (patches) => planOutbound(snapshot, { ...outbound, patches }) },
    ...(inbound
      ? [{ ...inbound, plan: (patches: readonly string[]) => planInbound(snapshot, { ...inbound, patches }) }]
      : []),
    ...(gateway
      ? [{ ...gateway, plan: (patches: readonly string[]) => planGateway(snapshot, { ...gateway, patches }) }]
      : []),
  ];
  return parts.filter(({ patches }) => patches.length > 0);
}

function* makesDifference(one: Plan, other: Plan): Generator<undefined, boolean> {
  for (const kind of ["clusters", "listeners", "routes", "extensions"] as const) {
    const others = new Map(other[kind].map((recipe) => [recipe.name, recipe]));
    if (one[kind].length !== others.size) return true;
    for (const recipe of one[kind]) {
      const counterpart = others.get(recipe.name);
      if (counterpart === undefined) return true;
      if (!isPatched(recipe) && !isPatched(counterpart)) continue;
      if (Buffer.compare(orderedBytes(recipe), orderedBytes(counterpart)) !== 0) return true;
      yield;
    }
  }
  return false;
}

function isPatched({ unpatched }: Recipe): boolean {
  return unpatched !== undefined;
}
