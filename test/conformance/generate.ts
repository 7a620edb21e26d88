/** All resources that a proxy would get, by kind and name, built without caches. */
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { planEndpoints, planGateway, planInbound, planNameTable, planOutbound } from "#translate/plan.ts";
import type { Recipe } from "#translate/recipes/recipe.ts";
import { viewsOf } from "#translate/views/views.ts";

/** Encoded resources by name. */
export type Resources = ReadonlyMap<string, Uint8Array>;

export interface Generated {
  readonly clusters: Resources;
  readonly listeners: Resources;
  readonly routes: Resources;
  readonly nameTables: Resources;
  /** Endpoints are asked for by cluster. */
  readonly endpointsOf: (cluster: string) => Uint8Array | undefined;
}

export function generate(snapshot: Snapshot, proxy: MeshProxy): Generated {
  const views = viewsOf(snapshot, proxy);
  const plans = [
    planOutbound(snapshot, views.outbound),
    ...(views.inbound === undefined ? [] : [planInbound(snapshot, views.inbound)]),
    ...(views.gateway === undefined ? [] : [planGateway(snapshot, views.gateway)]),
  ];
  const listeners = plans
    .flatMap((plan) => plan.listeners)
    .filter((listener) => !views.omittedListeners.has(listener.name));
  return {
    clusters: encodeAll(plans.flatMap((plan) => plan.clusters)),
    listeners: encodeAll(listeners),
    routes: encodeAll(plans.flatMap((plan) => plan.routes)),
    nameTables: encodeAll([planNameTable(snapshot, views.names)]),
    endpointsOf: (cluster) => {
      const recipe = planEndpoints(snapshot, views.endpoints, cluster);
      return recipe === undefined ? undefined : encodeRecipe(recipe);
    },
  };
}

function encodeAll(recipes: readonly Recipe[]): Resources {
  return new Map(recipes.map((recipe) => [recipe.name, encodeRecipe(recipe)]));
}

/** The message and its parts, each part a length-delimited field behind it. */
export function encodeRecipe(recipe: Recipe): Uint8Array {
  const writer = new BinaryWriter().raw(recipe.build(recipe.input));
  for (const part of recipe.parts?.recipes ?? []) {
    writer.tag(recipe.parts?.field ?? 0, WireType.LengthDelimited).bytes(encodeRecipe(part));
  }
  return writer.finish();
}
