/**
 * The parts that connected proxies use, each planned and built once per snapshot however many proxies have it. A part
 * nobody uses any more is forgotten with everything that was built for it.
 */

import type { Slices } from "#lib/async/slices.ts";
import { hasSameItems } from "#lib/collections/same-items.ts";
import type { Logger } from "#lib/log/log.ts";
import type { Snapshot } from "#model/snapshot.ts";
import type { Layer, Layers } from "#protocol/resource.ts";
import type { Recipe } from "#translate/recipes/recipe.ts";
import type { BuiltResource } from "../resources/built-resource.ts";
import { type CacheCounts, RecipeCache } from "../resources/recipe-cache.ts";
import { AskedLayer, type LayerContext, ListedLayer } from "../resources/resource-layer.ts";
import type { Part, PartByName, ProxyParts } from "./parts.ts";

/** So many may be built without a pause. */
const FEW_NAMES = 8;

/** What resources are asked of. */
export interface AskedState {
  /** Another number for each snapshot, and whenever something beside it changed. */
  readonly version: number;
  readonly snapshot: Snapshot;
  /** Built ahead, where resources are asked for by name. */
  readonly names: ReadonlySet<string>;
}

interface ListedPart {
  users: number;
  /** Number of the snapshot that `plan` is of; layers are built from it when first asked for. */
  version: number;
  snapshot: Snapshot | undefined;
  plan: Map<string, readonly Recipe[]>;
  readonly layers: Map<string, ListedLayer>;
}

interface AskedPart {
  users: number;
  version: number;
  snapshot: Snapshot | undefined;
  readonly layer: AskedLayer;
}

/** Of one version: later layers may be others. */
interface ReadyLayers {
  readonly version: number;
  readonly layers: Map<string, Layers<BuiltResource>>;
}

export class Catalogue {
  readonly #cache = new RecipeCache();
  readonly #slices: Slices;
  readonly #log: Logger;
  readonly #listed = new Map<string, ListedPart>();
  readonly #asked = new Map<string, AskedPart>();
  /** Parts with those before them that have the same keys: most proxies of a push go from the same to the same. */
  readonly #followers = new WeakMap<ProxyParts, ProxyParts>();
  /** Layers that are ready, by parts and type. */
  readonly #ready = new WeakMap<ProxyParts, ReadyLayers>();

  constructor(slices: Slices, log: Logger) {
    this.#slices = slices;
    this.#log = log;
  }

  /** Parts and resources held, to see that nothing is left behind. */
  get size(): { readonly parts: number; readonly resources: number } {
    return { parts: this.#listed.size + this.#asked.size, resources: this.#cache.size };
  }

  /** What happened in the cache since the last time somebody asked. */
  takeCounts(): CacheCounts {
    return this.#cache.takeCounts();
  }

  /** A proxy that had the parts `before` has the parts `after` from now on; undefined before it came and after it went. */
  use(after: ProxyParts | undefined, before: ProxyParts | undefined): void {
    if (after !== undefined && before !== undefined && this.#isFollower(after, before)) return;
    for (const part of listedParts(after)) this.#listedPart(part).users++;
    for (const [typeUrl, part] of after?.asked ?? []) this.#askedPart(part, typeUrl).users++;
    for (const part of listedParts(before)) this.#leave(this.#listed, part.key);
    for (const { key } of before?.asked.values() ?? []) this.#leave(this.#asked, key);
  }

  /** The resources of a type for a proxy with these parts at that snapshot. */
  async layers(parts: ProxyParts, typeUrl: string, at: AskedState): Promise<Layers<BuiltResource>> {
    const asked = parts.asked.get(typeUrl);
    if (asked !== undefined) return this.#shared(parts, typeUrl, at, [await this.#askedLayer(asked, typeUrl, at)]);
    const layers = [];
    for (const part of parts.types.get(typeUrl) ?? []) layers.push(await this.#layer(part, typeUrl, at));
    return this.#shared(parts, typeUrl, at, layers);
  }

  /** The same at once, where nothing has to be planned and hardly anything built: so it is for most proxies of a push. */
  readyLayers(parts: ProxyParts, typeUrl: string, at: AskedState): Layers<BuiltResource> | undefined {
    const asked = at.names.size > FEW_NAMES ? parts.asked.get(typeUrl) : undefined;
    if (asked !== undefined && this.#asked.get(asked.key)?.layer.isPrepared(at.names) !== true) return undefined;
    const same = this.#readyAt(parts, at).get(typeUrl);
    if (same !== undefined) return same;
    const layers = this.#findReady(parts, typeUrl, at);
    return layers && this.#shared(parts, typeUrl, at, layers);
  }

  /** The list of those layers that proxies with these parts have in common. */
  #shared(parts: ProxyParts, typeUrl: string, at: AskedState, layers: Layers<BuiltResource>): Layers<BuiltResource> {
    const ready = this.#readyAt(parts, at);
    const known = ready.get(typeUrl);
    if (known !== undefined && hasSameItems(known, layers)) return known;
    ready.set(typeUrl, layers);
    return layers;
  }

  #readyAt(parts: ProxyParts, { version }: AskedState): Map<string, Layers<BuiltResource>> {
    const known = this.#ready.get(parts);
    if (known?.version === version) return known.layers;
    const layers = new Map<string, Layers<BuiltResource>>();
    this.#ready.set(parts, { version, layers });
    return layers;
  }

  #findReady(parts: ProxyParts, typeUrl: string, at: AskedState): Layers<BuiltResource> | undefined {
    const asked = parts.asked.get(typeUrl);
    if (asked !== undefined) {
      const state = this.#asked.get(asked.key);
      return state?.version === at.version ? [state.layer.layer] : undefined;
    }
    const layers: Layer<BuiltResource>[] = [];
    for (const part of parts.types.get(typeUrl) ?? []) {
      const state = this.#listed.get(part.key);
      const isPlanned = state !== undefined && isCurrent(state, part, at) && !state.plan.has(typeUrl);
      const layer = isPlanned ? state.layers.get(typeUrl) : undefined;
      if (layer === undefined) return undefined;
      layers.push(layer.layer);
    }
    return layers;
  }

  #isFollower(after: ProxyParts, before: ProxyParts): boolean {
    if (this.#followers.get(after) === before) return true;
    const isSame = haveSameKeys(after, before);
    if (isSame) this.#followers.set(after, before);
    return isSame;
  }

  async #layer(part: Part, typeUrl: string, at: AskedState) {
    const state = this.#listedPart(part);
    if (!isCurrent(state, part, at)) {
      state.plan = new Map(await this.#slices.run(part.plan()));
      state.version = at.version;
      state.snapshot = at.snapshot;
    }
    const layer = state.layers.get(typeUrl) ?? new ListedLayer(this.#context(typeUrl));
    const recipes = state.plan.get(typeUrl);
    if (recipes !== undefined || !state.layers.has(typeUrl)) await layer.update(recipes ?? []);
    // The plan has served its purpose for this type.
    state.plan.delete(typeUrl);
    state.layers.set(typeUrl, layer);
    return layer.layer;
  }

  async #askedLayer(part: PartByName, typeUrl: string, at: AskedState) {
    const state = this.#askedPart(part, typeUrl);
    if (state.version !== at.version) {
      const changed = state.snapshot && part.changedSince?.(state.snapshot);
      await state.layer.update((name) => part.plan(name), changed);
      state.version = at.version;
      state.snapshot = at.snapshot;
    }
    await state.layer.prepare(at.names);
    return state.layer.layer;
  }

  #context(typeUrl: string): LayerContext {
    const onBroken = (name: string, reason: string) => {
      this.#log.error("cannot build a resource: it stays as it was", { type: typeUrl, name, reason });
    };
    return { typeUrl, cache: this.#cache, slices: this.#slices, onBroken };
  }

  #listedPart(part: Part): ListedPart {
    const known = this.#listed.get(part.key);
    if (known !== undefined) return known;
    const made = { users: 0, version: Number.NaN, snapshot: undefined, plan: new Map(), layers: new Map() };
    this.#listed.set(part.key, made);
    return made;
  }

  #askedPart(part: PartByName, typeUrl: string): AskedPart {
    const known = this.#asked.get(part.key);
    if (known !== undefined) return known;
    const layer = new AskedLayer(this.#context(typeUrl), (name) => part.plan(name));
    const made = { users: 0, version: Number.NaN, snapshot: undefined, layer };
    this.#asked.set(part.key, made);
    return made;
  }

  #leave(parts: Map<string, ListedPart | AskedPart>, key: string): void {
    const part = parts.get(key);
    if (part === undefined || --part.users > 0) return;
    parts.delete(key);
    for (const layer of "layers" in part ? part.layers.values() : [part.layer]) layer.release();
  }
}

/** Whether its plan is that of the snapshot, or would be the same. */
function isCurrent(state: ListedPart, part: Part, { version, snapshot }: AskedState): boolean {
  if (state.version === version) return true;
  if (state.snapshot === undefined || part.isSameSince?.(state.snapshot) !== true) return false;
  state.version = version;
  state.snapshot = snapshot;
  return true;
}

function haveSameKeys(a: ProxyParts, b: ProxyParts): boolean {
  if (a.types.size !== b.types.size || a.asked.size !== b.asked.size) return false;
  for (const [typeUrl, { key }] of a.asked) if (b.asked.get(typeUrl)?.key !== key) return false;
  for (const [typeUrl, parts] of a.types) {
    const others = b.types.get(typeUrl);
    if (others?.length !== parts.length || parts.some(({ key }, i) => others[i]?.key !== key)) return false;
  }
  return true;
}

function listedParts(parts: ProxyParts | undefined): readonly Part[] {
  return parts === undefined ? [] : [...new Set([...parts.types.values()].flat())];
}
