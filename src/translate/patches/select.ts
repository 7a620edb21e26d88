/** Which patches a proxy gets. */

import { RE2JS } from "re2js";
import type { EnvoyFilter, PatchMatch } from "#config/kinds/envoy-filter/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { compareText } from "#lib/text/compare-text.ts";
import type { Features } from "#model/features.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { isAttached } from "../policies/attachment.ts";
import { derived } from "../recipes/indexes.ts";
import { isForContext } from "./match.ts";
import { type Patch, type PatchContext, patchAt, type Target } from "./patch.ts";

type FilterObject = ConfigObject<EnvoyFilter>;

/** A patch of an object. */
export interface Chosen {
  readonly filter: FilterObject;
  readonly index: number;
  readonly patch: Patch;
}

/** The patches of each part of a proxy's configuration, as `namespace/name/index`, in the order they are applied. */
export interface SelectedPatches {
  readonly outbound: readonly string[];
  readonly inbound: readonly string[];
  readonly gateway: readonly string[];
}

const NONE: SelectedPatches = { outbound: [], inbound: [], gateway: [] };

/** The patches of the root namespace and of the proxy's own that are for it. */
export function selectPatches(snapshot: Snapshot, proxy: MeshProxy): SelectedPatches {
  const { envoyFilters, mesh, features } = snapshot;
  if (envoyFilters.length === 0) return NONE;
  const filters = inNamespaces(`${mesh.rootNamespace}/${proxy.namespace}`, envoyFilters);
  const chosen = filters
    .filter((filter) => isSelected(filter, proxy, features))
    .flatMap(chosenOf)
    .filter(({ patch }) => isForProxy(patch.match, proxy));
  if (chosen.length === 0) return NONE;
  const ids = (fits: (patch: Patch) => boolean) => chosen.filter(({ patch }) => fits(patch)).map(idOf);
  const context = (wanted: PatchContext) => (patch: Patch) => isForContext(patch.match, wanted);
  if (proxy.type === "router") {
    // The clusters of a router are those of its outbound view.
    const isOutbound = ({ target }: Patch) => target === "CLUSTER" || target === "EXTENSION_CONFIG";
    return {
      outbound: ids((patch) => isOutbound(patch) && (isExtension(patch) || context("GATEWAY")(patch))),
      inbound: [],
      gateway: ids((patch) => !isOutbound(patch) && context("GATEWAY")(patch)),
    };
  }
  return {
    outbound: ids((patch) => isExtension(patch) || context("SIDECAR_OUTBOUND")(patch)),
    inbound: ids((patch) => !isExtension(patch) && context("SIDECAR_INBOUND")(patch)),
    gateway: [],
  };
}

/** The patches of these ids. */
export function chosenPatches({ envoyFilters }: Snapshot, ids: readonly string[]): readonly Chosen[] {
  if (ids.length === 0) return [];
  const known = byId("", envoyFilters);
  return ids.flatMap((id) => known.get(id) ?? []);
}

/** Settings of extensions are asked for by name, whoever names them. */
function isExtension({ target }: { readonly target: Target }): boolean {
  return target === "EXTENSION_CONFIG";
}

/** Lower priorities first, then those of the root namespace, then older ones. */
const inNamespaces = derived((key: string, filters: readonly FilterObject[]) => {
  const [root = "", own = ""] = key.split("/");
  const isRoot = ({ metadata }: FilterObject) => metadata.namespace === root;
  const text = ({ metadata: { name, namespace } }: FilterObject) => `${name}.${namespace}`;
  return filters
    .filter(({ metadata: { namespace } }) => namespace === root || namespace === own)
    .sort(
      (a, b) =>
        (a.spec.priority ?? 0) - (b.spec.priority ?? 0) ||
        Number(isRoot(b)) - Number(isRoot(a)) ||
        a.metadata.createdAt - b.metadata.createdAt ||
        compareText(text(a), text(b)),
    );
});

function isSelected({ spec, ...object }: FilterObject, proxy: MeshProxy, features: Features): boolean {
  const selector = { matchLabels: spec.workloadSelector?.labels ?? {} };
  return isAttached({ ...object, spec: { selector, targetRefs: spec.targetRefs } }, proxy, features);
}

function isForProxy({ proxy: wanted }: PatchMatch, { metadata }: MeshProxy): boolean {
  const { proxyVersion = "", metadata: values = {} } = wanted ?? {};
  const version = metadata.ISTIO_VERSION;
  if (proxyVersion !== "" && !(typeof version === "string" && version !== "" && isMatch(proxyVersion, version))) {
    return false;
  }
  return Object.entries(values).every(([key, value]) => Object.hasOwn(metadata, key) && metadata[key] === value);
}

/** The checks have compiled it before; it may match anywhere in the version. */
function isMatch(regex: string, version: string): boolean {
  return RE2JS.compile(regex).matcher(version).find();
}

function chosenOf(filter: FilterObject): readonly Chosen[] {
  return (filter.spec.configPatches ?? []).flatMap((_, index) => {
    const patch = patchAt(filter, index);
    return patch === undefined ? [] : [{ filter, index, patch }];
  });
}

function idOf({ filter: { metadata }, index }: Chosen): string {
  return `${metadata.namespace}/${metadata.name}/${index}`;
}

const byId = derived(
  (_: string, filters: readonly FilterObject[]): ReadonlyMap<string, Chosen> =>
    new Map(filters.flatMap(chosenOf).map((chosen) => [idOf(chosen), chosen])),
);
