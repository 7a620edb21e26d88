/** Patches of listeners and of their chains. */
import { clone, fromBinary } from "@bufbuild/protobuf";
import { anyIs } from "@bufbuild/protobuf/wkt";
import {
  type FilterChain,
  FilterChainSchema,
  type ListenerFilter,
  ListenerFilterSchema,
} from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import { type Listener, ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { HttpConnectionManagerSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { pack } from "../wire/encode.ts";
import { mergeSocketConfig } from "./clusters.ts";
import { placed } from "./list.ts";
import { matchesChain, matchesListener } from "./match.ts";
import { mergedAny, mergeInto } from "./merge.ts";
import { patchNetworkFilters } from "./network-filters.ts";
import type { Patch, PatchSet } from "./patch.ts";
import { patchRoutes, type RoutePatches } from "./routes.ts";

/** Changes the listener: itself, its filters, then its chains one by one; false when it is removed. */
export function patchListener(patches: PatchSet, listener: Listener): boolean {
  if (!patchListenerItself(patches.LISTENER, listener)) return false;
  for (const patch of patches.LISTENER_FILTER) patchListenerFilters(patch, listener);
  patchChains(patches, listener);
  return true;
}

/** What patches do to a listener apart from its filters and chains; false when it is removed. */
export function patchListenerItself(patches: readonly Patch<"LISTENER">[], listener: Listener): boolean {
  for (const { target, operation, match, value } of patches) {
    if (!matchesListener(match.listener, listener, target)) continue;
    if (operation === "REMOVE") return false;
    if (operation === "MERGE" && value !== undefined) mergeInto(ListenerSchema, listener, value);
  }
  return true;
}

/** Routes that stand inside a listener, as those of the workload's own ports do. */
export function patchInlineRoutes(patches: RoutePatches, listener: Listener): void {
  const chains = [...listener.filterChains, listener.defaultFilterChain].flatMap((chain) => chain ?? []);
  for (const { configType } of chains.flatMap(({ filters }) => filters)) {
    if (configType.case !== "typedConfig" || !anyIs(configType.value, HttpConnectionManagerSchema)) continue;
    const manager = fromBinary(HttpConnectionManagerSchema, configType.value.value);
    if (manager.routeSpecifier.case !== "routeConfig") continue;
    patchRoutes(patches, manager.routeSpecifier.value, { context: "SIDECAR_INBOUND", servicePorts: new Map() });
    configType.value = pack(HttpConnectionManagerSchema, manager);
  }
}

function patchListenerFilters({ target, operation, match, value }: Patch<"LISTENER_FILTER">, listener: Listener): void {
  if (!matchesListener(match.listener, listener, target)) return;
  const wanted = match.listener?.listenerFilter;
  const names = wanted ? ({ name }: ListenerFilter) => name === wanted : undefined;
  if (operation === "MERGE") {
    if (value !== undefined && names !== undefined) {
      for (const filter of listener.listenerFilters.filter(names)) mergeListenerFilter(filter, value);
    }
  } else {
    const item = () => (value === undefined ? [] : [clone(ListenerFilterSchema, value)]);
    listener.listenerFilters = placed(listener.listenerFilters, { operation, item, names });
  }
}

/** Unlike other filters these keep their name. */
function mergeListenerFilter(filter: ListenerFilter, patch: ListenerFilter): void {
  if (filter.configType.case !== "typedConfig" || patch.configType.case !== "typedConfig") return;
  const value = mergedAny(filter.configType.value, patch.configType.value);
  if (value !== undefined) filter.configType = { case: "typedConfig", value };
}

/** A chain without filters is none. The one for all the rest is patched like the others. */
function patchChains(patches: PatchSet, listener: Listener): void {
  const isKept = (chain: FilterChain) => chain.filters.length > 0 && patchChain(patches, listener, chain);
  const kept = listener.filterChains.filter(isKept);
  const rest = listener.defaultFilterChain;
  if (rest !== undefined && rest.filters.length > 0 && !patchChain(patches, listener, rest)) {
    delete listener.defaultFilterChain;
  }
  const added = patches.FILTER_CHAIN.flatMap(({ target, operation, match, value }) =>
    operation === "ADD" && value !== undefined && matchesListener(match.listener, listener, target)
      ? [clone(FilterChainSchema, value)]
      : [],
  );
  listener.filterChains = [...kept, ...added.filter(({ filters }) => filters.length > 0)];
}

/** False when the chain is removed. */
function patchChain(patches: PatchSet, listener: Listener, chain: FilterChain): boolean {
  for (const { target, operation, match, value } of patches.FILTER_CHAIN) {
    const fits = matchesListener(match.listener, listener, target) && matchesChain(match.listener, listener, chain);
    if (!fits) continue;
    if (operation === "REMOVE") return false;
    if (operation === "MERGE" && value !== undefined) mergeChain(chain, value);
  }
  patchNetworkFilters(patches, listener, chain);
  return true;
}

/** A patch for the transport socket that the chain has changes the settings of that, and nothing else. */
function mergeChain(chain: FilterChain, patch: FilterChain): void {
  const isSame = patch.transportSocket !== undefined && chain.transportSocket?.name === patch.transportSocket.name;
  if (isSame && chain.transportSocket !== undefined && patch.transportSocket !== undefined) {
    mergeSocketConfig(chain.transportSocket, patch.transportSocket);
  } else mergeInto(FilterChainSchema, chain, patch);
}
