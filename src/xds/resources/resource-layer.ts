/**
 * The resources of one part and type, as they follow the snapshots. The layer that proxies hold is replaced only when
 * something in it changed: who has the same layer has the same resources.
 */

import type { Slices } from "#lib/async/slices.ts";
import { ITEMS_PER_STEP } from "#lib/async/steps.ts";
import { errorText } from "#lib/mesh-error.ts";
import { noteChanges } from "#protocol/changes.ts";
import type { Layer } from "#protocol/resource.ts";
import type { Recipe } from "#translate/recipes/recipe.ts";
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
    const { slices } = this.#context;
    const before = this.#resources;
    const after = new Map<string, BuiltResource>();
    /** All but those that were made from the very recipes of now, as most are: these stay held as they are. */
    const renewed: string[] = [];
    let count = 0;
    for (const recipe of recipes) {
      if (count++ % ITEMS_PER_STEP === 0 && slices.isOver) await slices.next();
      const { name } = recipe;
      if (after.has(name)) continue; // Envoy would reject two of one name; the first one wins.
      const hint = before.get(name);
      if (hint?.recipe === recipe) {
        after.set(name, hint);
        continue;
      }
      renewed.push(name);
      const resource =
        recipe.parts === undefined
          ? acquire(this.#context, recipe, hint)
          : await acquireInSlices(this.#context, recipe, hint);
      if (resource !== undefined) after.set(name, resource);
    }
    const gone = [...before.keys().filter((name) => !after.has(name))];
    const others = [...gone, ...renewed.filter((name) => after.get(name) !== before.get(name))];
    if (others.length === 0) {
      releaseAll(this.#context, after, renewed);
      return;
    }
    this.#resources = after;
    releaseAll(this.#context, before, [...gone, ...renewed]);
    noteChanges(before, after, others);
  }

  release(): void {
    releaseAll(this.#context, this.#resources, this.#resources.keys());
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
    this.#resources = new LazyLayer(context, (name) => this.#plan(name));
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
    const missed = [...before.missed].filter(changed);
    const names = [...before.found.keys().filter(changed), ...missed];
    // Who asked for more than can be remembered learns from a new layer that it has to look again.
    const isFull = before.missed.size >= MOST_MISSED;
    if (names.length === 0 && !isFull) return;
    const known = before.found.size;
    const after = new LazyLayer(this.#context, (name) => this.#plan(name), before.found);
    for (const name of names) {
      after.renew(name);
      if (this.#context.slices.isOver) await this.#context.slices.next();
    }
    const hasCome = missed.some((name) => after.found.has(name));
    const isSame = !isFull && !hasCome && names.every((name) => after.found.get(name) === before.found.get(name));
    // What somebody found in the old one meanwhile, by the new plan.
    const renewed = new Set(names);
    for (const [name, resource] of before.found.entries().drop(known))
      if (!renewed.has(name)) after.found.set(name, resource);
    releaseAll(this.#context, (isSame ? after : before).found, names);
    if (isSame) return;
    before.retire();
    noteChanges(before, after, names);
    this.#resources = after;
    this.#prepared = new WeakSet();
  }

  release(): void {
    const { found } = this.#resources;
    releaseAll(this.#context, found, found.keys());
    this.#resources.retire();
  }
}

/** Names that do not exist, as many as are remembered: anybody can make them up. */
const MOST_MISSED = 1000;

/**
 * Finds resources when they are asked for. Names that do not exist are remembered until there is a newer layer, in which those who
 * wait for them look again. Once retired a layer only tells what it told before.
 */
class LazyLayer implements Layer<BuiltResource> {
  readonly #context: LayerContext;
  readonly found: Map<string, BuiltResource>;
  readonly missed = new Set<string>();
  #plan: (name: string) => Recipe | undefined;

  /** With what was found before, which is held once for both. */
  constructor(
    context: LayerContext,
    plan: (name: string) => Recipe | undefined,
    found: ReadonlyMap<string, BuiltResource> = new Map(),
  ) {
    this.#context = context;
    this.#plan = plan;
    this.found = new Map(found);
  }

  get(name: string): BuiltResource | undefined {
    return this.found.get(name) ?? this.renew(name);
  }

  keys(): Iterable<string> {
    return this.found.keys();
  }

  /** Finds it by the plan of now, whatever was found before. */
  renew(name: string): BuiltResource | undefined {
    const recipe = this.#plan(name);
    const resource = recipe && acquire(this.#context, recipe, this.found.get(name));
    if (resource === undefined) {
      this.found.delete(name);
      if (this.missed.size < MOST_MISSED) this.missed.add(name);
    } else {
      this.found.set(name, resource);
      this.missed.delete(name);
    }
    return resource;
  }

  retire(): void {
    this.#plan = () => undefined;
  }
}

function releaseAll(
  { cache }: LayerContext,
  resources: ReadonlyMap<string, BuiltResource>,
  names: Iterable<string>,
): void {
  for (const name of names) {
    const resource = resources.get(name);
    if (resource !== undefined) cache.release(resource);
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
