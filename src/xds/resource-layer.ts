/**
 * The resources of one part and type, as they follow the snapshots. The layer that proxies hold is replaced only when
 * something in it changed: who has the same layer has the same resources.
 */

import type { Slices } from "#lib/async/slices.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { Layer } from "#protocol/resource.ts";
import type { Recipe } from "#translate/recipe.ts";
import type { BuiltResource } from "./built-resource.ts";
import type { RecipeCache } from "./recipe-cache.ts";

export interface LayerContext {
  readonly typeUrl: string;
  readonly cache: RecipeCache;
  readonly slices: Slices;
  /** A builder threw, which is a bug; the resource stays as it was. */
  readonly onBroken: (name: string, reason: string) => void;
}

/** All resources of a part and type. */
export class ListedLayer {
  readonly #context: LayerContext;
  /** What the resources were made from. */
  #recipes: readonly Recipe[] = [];
  #resources: ReadonlyMap<string, BuiltResource> = new Map();

  constructor(context: LayerContext) {
    this.#context = context;
  }

  get layer(): Layer<BuiltResource> {
    return this.#resources;
  }

  async update(recipes: readonly Recipe[]): Promise<void> {
    if (recipes === this.#recipes) return;
    this.#recipes = recipes;
    const before = this.#resources;
    const after = new Map<string, BuiltResource>();
    let same = true;
    for (const recipe of recipes) {
      if (after.has(recipe.name)) continue; // Envoy would reject two of one name; the first one wins.
      const hint = before.get(recipe.name);
      const whole = recipe.parts === undefined;
      const resource = whole
        ? acquire(this.#context, recipe, hint)
        : await acquireInSlices(this.#context, recipe, hint);
      if (resource !== undefined) after.set(recipe.name, resource);
      same &&= resource === hint;
      if (this.#context.slices.isOver) await this.#context.slices.next();
    }
    if (same && after.size === before.size) {
      for (const resource of after.values()) this.#context.cache.release(resource);
      return;
    }
    this.#resources = after;
    for (const resource of before.values()) this.#context.cache.release(resource);
  }

  release(): void {
    for (const resource of this.#resources.values()) this.#context.cache.release(resource);
    this.#resources = new Map();
  }
}

/** The resources of a part that somebody asked for by name. */
export class AskedLayer {
  readonly #context: LayerContext;
  #plan: (name: string) => Recipe | undefined;
  #resources: LazyLayer;
  /** Sets of names that were built ahead: proxies that ask for the same names have one set. */
  #prepared = new WeakSet<ReadonlySet<string>>();

  constructor(context: LayerContext, plan: (name: string) => Recipe | undefined) {
    this.#context = context;
    this.#plan = plan;
    this.#resources = this.#newLayer();
  }

  get layer(): Layer<BuiltResource> {
    return this.#resources;
  }

  /** Plans and builds these names ahead, in slices, so that looking them up costs nothing. */
  async prepare(names: ReadonlySet<string>): Promise<void> {
    if (this.isPrepared(names)) return;
    for (const name of names) {
      this.#resources.get(name);
      if (this.#context.slices.isOver) await this.#context.slices.next();
    }
    this.#prepared.add(names);
  }

  /** Whether these very names were built ahead. */
  isPrepared(names: ReadonlySet<string>): boolean {
    return this.#prepared.has(names);
  }

  /** `changed` tells the names whose plan may be another than before; it may be so for all when not given. */
  async update(
    plan: (name: string) => Recipe | undefined,
    changed: (name: string) => boolean = () => true,
  ): Promise<void> {
    this.#plan = plan;
    const before = this.#resources;
    if (!before.found.keys().some(changed)) return;
    const after = this.#newLayer();
    let same = true;
    for (const [name, hint] of before.found) {
      if (changed(name)) same = after.get(name, hint) === hint && same;
      else after.keep(hint);
      if (this.#context.slices.isOver) await this.#context.slices.next();
    }
    if (!same) {
      this.#resources = after;
      this.#prepared = new WeakSet();
    }
    (same ? after : before).retire();
  }

  release(): void {
    this.#resources.retire();
  }

  #newLayer(): LazyLayer {
    return new LazyLayer(this.#context, (name) => this.#plan(name));
  }
}

/**
 * Finds resources when they are asked for. Names that do not exist are not remembered: anybody can make them up. Once
 * retired a layer only tells what it told before.
 */
class LazyLayer implements Layer<BuiltResource> {
  readonly #context: LayerContext;
  readonly found = new Map<string, BuiltResource>();
  #plan: (name: string) => Recipe | undefined;

  constructor(context: LayerContext, plan: (name: string) => Recipe | undefined) {
    this.#context = context;
    this.#plan = plan;
  }

  get(name: string, hint?: BuiltResource): BuiltResource | undefined {
    const known = this.found.get(name);
    if (known !== undefined) return known;
    const recipe = this.#plan(name);
    const resource = recipe && acquire(this.#context, recipe, hint);
    if (resource !== undefined) this.found.set(name, resource);
    return resource;
  }

  keys(): Iterable<string> {
    return this.found.keys();
  }

  /** Holds what another layer has found. */
  keep(resource: BuiltResource): void {
    this.#context.cache.hold(resource);
    this.found.set(resource.name, resource);
  }

  retire(): void {
    this.#plan = () => undefined;
    for (const resource of this.found.values()) this.#context.cache.release(resource);
  }
}

async function acquireInSlices(
  context: LayerContext,
  recipe: Recipe,
  hint: BuiltResource | undefined,
): Promise<BuiltResource | undefined> {
  try {
    return await context.slices.run(context.cache.acquireSteps(context.typeUrl, recipe, hint));
  } catch (thrown) {
    return broken(context, { recipe, hint, thrown });
  }
}

function acquire(context: LayerContext, recipe: Recipe, hint: BuiltResource | undefined): BuiltResource | undefined {
  try {
    return context.cache.acquire(context.typeUrl, recipe, hint);
  } catch (thrown) {
    return broken(context, { recipe, hint, thrown });
  }
}

function broken(
  { cache, typeUrl, onBroken }: LayerContext,
  { recipe, hint, thrown }: { readonly recipe: Recipe; readonly hint: BuiltResource | undefined; thrown: unknown },
): BuiltResource | undefined {
  onBroken(recipe.name, errorText(thrown));
  return hint && cache.acquire(typeUrl, hint.recipe, hint);
}
