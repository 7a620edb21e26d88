/** Patches of network filters, and of the HTTP filters inside them. */
import { clone, fromBinary } from "@bufbuild/protobuf";
import { anyIs } from "@bufbuild/protobuf/wkt";
import { type Filter, type FilterChain, FilterSchema } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import type { Listener } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import {
  type HttpConnectionManager,
  HttpConnectionManagerSchema,
  type HttpFilter,
  HttpFilterSchema,
} from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { pack } from "../wire/encode.ts";
import { placed } from "./list.ts";
import { httpFilterOf, matchesChain, matchesListener, networkFilterOf } from "./match.ts";
import { mergedAny } from "./merge.ts";
import type { Patch, PatchSet } from "./patch.ts";

const HTTP_CONNECTION_MANAGER = "envoy.filters.network.http_connection_manager";

/** Filters come and go first; then those that are there are merged with what patches say of them, and their HTTP filters. */
export function patchNetworkFilters(patches: PatchSet, listener: Listener, chain: FilterChain): void {
  const fits = ({ target, match }: Patch) =>
    matchesListener(match.listener, listener, target) && matchesChain(match.listener, listener, chain);
  const own = patches.NETWORK_FILTER.filter(fits);
  const inner = patches.HTTP_FILTER.filter(fits);
  for (const { operation, match, value } of own) {
    const wanted = networkFilterOf(match.listener);
    const names = wanted === undefined ? undefined : ({ name }: Filter) => name === wanted;
    const item = () => (value === undefined ? [] : [clone(FilterSchema, value)]);
    chain.filters = placed(chain.filters, { operation, item, names });
  }
  for (const filter of chain.filters) {
    for (const { operation, match, value } of own) {
      if (operation === "MERGE" && value !== undefined && isNamed(networkFilterOf(match.listener), filter)) {
        mergeFilter(filter, value);
      }
    }
    if (filter.name === HTTP_CONNECTION_MANAGER && inner.length > 0) patchHttpFilters(inner, filter);
  }
}

function isNamed(wanted: string | undefined, { name }: { readonly name: string }): boolean {
  return wanted === undefined || wanted === name;
}

/** The settings are merged if they are of one type, and the name is the patch's if it has one. Without settings there is nothing to merge with. */
function mergeFilter(filter: Filter | HttpFilter, patch: Filter | HttpFilter): void {
  if (filter.configType.case !== "typedConfig") return;
  const value =
    patch.configType.case === "typedConfig" ? mergedAny(filter.configType.value, patch.configType.value) : undefined;
  if (patch.name !== "") filter.name = patch.name;
  if (value !== undefined) filter.configType = { case: "typedConfig", value };
}

function patchHttpFilters(all: readonly Patch<"HTTP_FILTER">[], filter: Filter): void {
  const patches = all.filter(({ match }) => isNamed(networkFilterOf(match.listener), filter));
  const { configType } = filter;
  if (patches.length === 0 || configType.case !== "typedConfig") return;
  if (!anyIs(configType.value, HttpConnectionManagerSchema)) return;
  const manager = fromBinary(HttpConnectionManagerSchema, configType.value.value);
  patchManager(patches, manager);
  filter.configType = { case: "typedConfig", value: pack(HttpConnectionManagerSchema, manager) };
}

function patchManager(patches: readonly Patch<"HTTP_FILTER">[], manager: HttpConnectionManager): void {
  for (const { operation, match, value } of patches) {
    const wanted = httpFilterOf(match.listener);
    const names = wanted === undefined ? undefined : ({ name }: HttpFilter) => name === wanted;
    const item = () => (value === undefined ? [] : [clone(HttpFilterSchema, value)]);
    manager.httpFilters = placed(manager.httpFilters, { operation, item, names });
  }
  for (const filter of manager.httpFilters) {
    for (const { operation, match, value } of patches) {
      if (operation === "MERGE" && value !== undefined && isNamed(httpFilterOf(match.listener), filter)) {
        mergeFilter(filter, value);
      }
    }
  }
}
