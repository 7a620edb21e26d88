/** Whether EnvoyFilters have an effect, as Istio counts it: by filter and by what its patches are for. */
import type { PatchEffects } from "#translate/idle-patches.ts";
import type { Labels, Metrics } from "./metrics.ts";

/** Istio's names of what patches are for; others are not counted. */
const TARGETS: Readonly<Record<string, string>> = {
  CLUSTER: "cluster",
  LISTENER: "listener",
  LISTENER_FILTER: "listenerfilter",
  FILTER_CHAIN: "filterchain",
  NETWORK_FILTER: "networkfilter",
  HTTP_FILTER: "httpfilter",
  ROUTE_CONFIGURATION: "route",
  VIRTUAL_HOST: "vhost",
  HTTP_ROUTE: "route",
};

/** Keeps the gauge in step with what was found out. */
export function patchCounter(metrics: Metrics): (effects: PatchEffects) => void {
  return (effects) => {
    for (const { value, labels } of patchStatus(effects)) metrics.set("pilot_envoy_filter_status", value, labels);
  };
}

/** 1 where one of the patches changes something, 0 where none does. */
function patchStatus({ idle, effective }: PatchEffects): readonly { value: 0 | 1; labels: Labels }[] {
  const applied = new Map<string, { value: 0 | 1; labels: Labels }>();
  for (const [chosen, value] of [
    [idle, 0],
    [effective, 1],
  ] as const) {
    for (const { filter, patch } of chosen) {
      const target = TARGETS[patch.target];
      if (target === undefined) continue;
      const { namespace, name } = filter.metadata;
      const labels = { name: `${namespace}/${name}`, patch: target, result: "applied" };
      applied.set(JSON.stringify(labels), { value, labels });
    }
  }
  return [...applied.values()];
}
