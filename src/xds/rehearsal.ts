/**
 * A rehearsal before the first proxy comes: what a sidecar that nobody has would get is built and thrown away. Code that
 * never ran is several times slower than code that did, and after a restart all proxies come at once.
 */
import type { Slices } from "#lib/async/slices.ts";
import type { Proxy as MeshProxy } from "#model/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "#protocol/type-urls.ts";
import type { Recipe } from "#translate/recipe.ts";
import type { PartsOf } from "./parts.ts";
import { RecipeCache } from "./recipe-cache.ts";

/** Of each type: as many as it takes until more of them make no difference. */
const ENOUGH = 400;

/** Builds some of everything that this mesh has. */
export async function rehearse(snapshot: Snapshot, partsOf: PartsOf, slices: Slices): Promise<void> {
  const { types, asked } = partsOf(snapshot, sidecarIn(busiestNamespace(snapshot), snapshot));
  const cache = new RecipeCache();
  const build = async (typeUrl: string, recipes: readonly Recipe[]) => {
    for (const recipe of recipes.slice(0, ENOUGH)) await slices.run(cache.acquireSteps(typeUrl, recipe));
  };
  for (const part of new Set([...types.values()].flat())) {
    const plan = await slices.run(part.plan());
    for (const [typeUrl, recipes] of plan) await build(typeUrl, recipes);
    const names = (plan.get(CLUSTER_TYPE) ?? []).slice(0, ENOUGH).map(({ name }) => name);
    const endpoints = names
      .map((name) => asked.get(ENDPOINT_TYPE)?.plan(name))
      .filter((recipe) => recipe !== undefined);
    await build(ENDPOINT_TYPE, endpoints);
  }
}

/** Where a proxy is most likely to be. */
function busiestNamespace({ services }: Snapshot): string {
  const counts = Map.groupBy(services, ({ namespace }) => namespace);
  return [...counts].toSorted(([, a], [, b]) => b.length - a.length)[0]?.[0] ?? "default";
}

function sidecarIn(namespace: string, { features }: Snapshot): MeshProxy {
  const dnsDomain = `${namespace}.svc.${features.domain}`;
  const id = `rehearsal.${namespace}`;
  return {
    nodeId: `sidecar~0.0.0.0~${id}~${dnsDomain}`,
    type: "sidecar",
    addresses: [],
    id,
    namespace,
    dnsDomain,
    labels: {},
    serviceAccount: "",
    metadata: { CLUSTER_ID: features.clusterId, NAMESPACE: namespace },
    envoyVersion: "",
    extensions: new Set(),
  };
}
