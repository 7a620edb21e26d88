/**
 * The parts that connected proxies use, each planned and built once per snapshot however many proxies have it. A part
 * nobody uses any more is forgotten with everything that was built for it.
 */

import type { Slices } from "#lib/async/slices.ts";
import type { Logger } from "#lib/log.ts";
import type { Layers } from "#protocol/resource.ts";
import type { Recipe } from "#translate/recipe.ts";
import type { BuiltResource } from "./built-resource.ts";
import type { Part, PartByName, ProxyParts } from "./parts.ts";
import { type CacheCounts, RecipeCache } from "./recipe-cache.ts";
import { AskedLayer, type LayerContext, ListedLayer } from "./resource-layer.ts";

interface ListedPart {
  users: number;
  /** Number of the snapshot that `plan` is of; layers are built from it when first asked for. */
  version: number;
  plan: Map<string, readonly Recipe[]>;
  readonly layers: Map<string, ListedLayer>;
}

interface AskedPart {
  users: number;
  version: number;
  readonly layer: AskedLayer;
}

export class Catalogue {
  readonly #cache = new RecipeCache();
  readonly #slices: Slices;
  readonly #log: Logger;
  readonly #listed = new Map<string, ListedPart>();
  readonly #asked = new Map<string, AskedPart>();

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
    for (const part of listedParts(after)) this.#listedPart(part).users++;
    for (const [typeUrl, part] of after?.asked ?? []) this.#askedPart(part, typeUrl).users++;
    for (const part of listedParts(before)) this.#leave(this.#listed, part.key);
    for (const { key } of before?.asked.values() ?? []) this.#leave(this.#asked, key);
  }

  /** The resources of a type for a proxy with these parts at that snapshot. Names are built ahead where they are asked for. */
  async layers(
    parts: ProxyParts,
    typeUrl: string,
    at: { version: number; names: Iterable<string> },
  ): Promise<Layers<BuiltResource>> {
    const asked = parts.asked.get(typeUrl);
    if (asked !== undefined) return [await this.#askedLayer(asked, typeUrl, at)];
    const layers = [];
    for (const part of parts.types.get(typeUrl) ?? []) layers.push(await this.#layer(part, typeUrl, at.version));
    return layers;
  }

  async #layer(part: Part, typeUrl: string, version: number) {
    const state = this.#listedPart(part);
    if (state.version !== version) {
      state.plan = new Map(await this.#slices.run(part.plan()));
      state.version = version;
    }
    const layer = state.layers.get(typeUrl) ?? new ListedLayer(this.#context(typeUrl));
    const recipes = state.plan.get(typeUrl);
    if (recipes !== undefined || !state.layers.has(typeUrl)) await layer.update(recipes ?? []);
    // The plan has served its purpose for this type.
    state.plan.delete(typeUrl);
    state.layers.set(typeUrl, layer);
    return layer.layer;
  }

  async #askedLayer(part: PartByName, typeUrl: string, at: { version: number; names: Iterable<string> }) {
    const state = this.#askedPart(part, typeUrl);
    if (state.version !== at.version) {
      await state.layer.update((name) => part.plan(name));
      state.version = at.version;
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
    const made = { users: 0, version: Number.NaN, plan: new Map(), layers: new Map() };
    this.#listed.set(part.key, made);
    return made;
  }

  #askedPart(part: PartByName, typeUrl: string): AskedPart {
    const known = this.#asked.get(part.key);
    if (known !== undefined) return known;
    const layer = new AskedLayer(this.#context(typeUrl), (name) => part.plan(name));
    const made = { users: 0, version: Number.NaN, layer };
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

function listedParts(parts: ProxyParts | undefined): readonly Part[] {
  return parts === undefined ? [] : [...new Set([...parts.types.values()].flat())];
}
