/**
 * Turns recipes into resources, once per distinct input. What a builder receives is its whole cache key: two recipes of
 * one builder and name are the same when their inputs have identical fields, arrays among them element by element.
 *
 * Whoever acquires a resource releases it again; the last release forgets it. So the cache holds what some proxy uses and
 * nothing else, however many namespaces come and go.
 */
import { finished, type Steps } from "#lib/async/steps.ts";
import { hasSameItems } from "#lib/collections/same-items.ts";
import { withMessages } from "#lib/wire/fields.ts";
import type { Recipe } from "#translate/recipes/recipe.ts";
import { type BuiltResource, builtResource, joinedResource } from "./built-resource.ts";
import { type JoinedBefore, type JoinedParts, joinedLength, joinParts } from "./joined-parts.ts";

/** What became of a recipe: a whole resource or a part of one. */
interface Fragment {
  readonly name: string;
  readonly build: Recipe["build"];
  readonly input: object;
  readonly parts: readonly Fragment[];
  /** What the parts were made from. */
  readonly recipes: readonly Recipe[];
  /** How they stand in the resource. */
  joined: JoinedParts | undefined;
  bytes: Uint8Array;
  resource: BuiltResource | undefined;
  users: number;
}

/** What is known before a recipe is looked at. */
interface Acquiring {
  /** Of the whole resource; undefined for a part of one. */
  readonly typeUrl: string | undefined;
  /** What the recipe became the last time: most recipes have not changed. */
  readonly hint: Fragment | undefined;
}

/** Looks that found something, looks that did not, and what nobody uses any more. */
export interface CacheCounts {
  readonly hits: number;
  readonly misses: number;
  readonly forgotten: number;
}

export class RecipeCache {
  /** By builder and name: a name has one variant for each different input. */
  readonly #known = new Map<Recipe["build"], Map<string, Fragment[]>>();
  readonly #fragments = new Map<BuiltResource, Fragment>();
  /** What recipes became: most plans have the very recipes of the plan before. */
  readonly #made = new WeakMap<Recipe, Fragment>();
  #counts = { hits: 0, misses: 0, forgotten: 0 };

  /** How many resources are held. */
  get size(): number {
    return this.#fragments.size;
  }

  /** What happened since the last time somebody asked. */
  takeCounts(): CacheCounts {
    const counts = this.#counts;
    this.#counts = { hits: 0, misses: 0, forgotten: 0 };
    return counts;
  }

  /** How many builders have something in the cache; none when nobody holds anything. */
  get builders(): number {
    return this.#known.size;
  }

  /** `hint` is what the recipe became the last time: most recipes have not changed. */
  acquire(typeUrl: string, recipe: Recipe, hint?: BuiltResource): BuiltResource {
    const resource = this.#made.get(recipe)?.resource;
    if (resource === undefined) return finished(this.acquireSteps(typeUrl, recipe, hint));
    this.hold(resource);
    return resource;
  }

  /** The same in steps: some resources have thousands of parts. */
  *acquireSteps(typeUrl: string, recipe: Recipe, hint?: BuiltResource): Steps<BuiltResource> {
    const fragment = yield* this.#acquire(recipe, { typeUrl, hint: hint && this.#fragments.get(hint) });
    if (fragment.resource === undefined) {
      fragment.resource = builtResource(typeUrl, recipe, fragment.bytes);
      // The frame ends with the same bytes: one copy is enough.
      fragment.bytes = fragment.resource.value;
    }
    this.#fragments.set(fragment.resource, fragment);
    return fragment.resource;
  }

  /** The same as acquiring it again from its recipe. */
  hold(resource: BuiltResource): void {
    const fragment = this.#fragments.get(resource);
    if (fragment === undefined) throw new Error(`Cannot hold "${resource.name}": nobody else does`);
    fragment.users++;
    this.#counts.hits++;
  }

  release(resource: BuiltResource): void {
    const fragment = this.#fragments.get(resource);
    if (fragment === undefined) throw new Error(`Cannot release "${resource.name}": nobody holds it`);
    this.#release(fragment);
    if (fragment.users === 0) this.#fragments.delete(resource);
  }

  /** What this very recipe became, as long as somebody holds it. */
  #take(recipe: Recipe): Fragment | undefined {
    const made = this.#made.get(recipe);
    if (made === undefined || made.users === 0) return undefined;
    this.#counts.hits++;
    made.users++;
    return made;
  }

  *#acquire(recipe: Recipe, at: Acquiring): Steps<Fragment> {
    const made = this.#take(recipe) ?? (yield* this.#compare(recipe, at));
    this.#made.set(recipe, made);
    return made;
  }

  /** By its input, part by part. */
  *#compare(recipe: Recipe, at: Acquiring): Steps<Fragment> {
    const { hint } = at;
    const parts = yield* this.#acquireParts(recipe.parts?.recipes ?? NO_PARTS, hint);
    const fits = (known: Fragment) => isSame(known.input, recipe.input) && hasSameItems(known.parts, parts);
    const hinted = hint?.build === recipe.build && hint.name === recipe.name && fits(hint) ? hint : undefined;
    const found = hinted ?? this.#known.get(recipe.build)?.get(recipe.name)?.find(fits);
    if (found === undefined) {
      this.#counts.misses++;
      return this.#make(recipe, parts, at);
    }
    this.#counts.hits++;
    found.users++;
    for (const part of parts) this.#release(part);
    return found;
  }

  /** Those that stand where the same did the last time cost next to nothing. */
  *#acquireParts(recipes: readonly Recipe[], hint: Fragment | undefined): Steps<readonly Fragment[]> {
    const parts: Fragment[] = [];
    const shift = (hint?.recipes.length ?? 0) - recipes.length;
    let moved = 0;
    try {
      for (let i = 0; i < recipes.length; i++) {
        const recipe = recipes[i] as Recipe;
        if (hint?.recipes[i + moved] !== recipe && hint?.recipes[i + shift] === recipe) moved = shift;
        const before = hint?.parts[i + moved];
        if (before !== undefined && before.users > 0 && hint?.recipes[i + moved] === recipe) {
          before.users++;
          this.#counts.hits++;
          parts.push(before);
          continue;
        }
        parts.push(this.#take(recipe) ?? (yield* this.#acquire(recipe, { typeUrl: undefined, hint: before })));
        yield;
      }
    } catch (thrown) {
      for (const part of parts) this.#release(part);
      throw thrown;
    }
    return parts;
  }

  #make(recipe: Recipe, parts: readonly Fragment[], { typeUrl, hint }: Acquiring): Fragment {
    const { name, build, input } = recipe;
    const recipes = recipe.parts?.recipes ?? NO_PARTS;
    const made: Fragment = { ...EMPTY, name, build, input, parts, recipes };
    try {
      const own = build(input);
      if (recipe.parts === undefined) made.bytes = own;
      else if (typeUrl === undefined) made.bytes = withMessages(own, recipe.parts.field, bytesOf(parts));
      else {
        const before = joinedBefore(hint);
        made.joined = joinParts(parts, recipe.parts.field, before);
        made.resource = joinedResource(typeUrl, recipe, { own, joined: made.joined, ...(before && { before }) });
        made.bytes = made.resource.value;
      }
    } catch (thrown) {
      for (const part of parts) this.#release(part);
      throw thrown;
    }
    const names = this.#known.get(build) ?? new Map<string, Fragment[]>();
    this.#known.set(build, names.set(name, [...(names.get(name) ?? []), made]));
    return made;
  }

  #release(fragment: Fragment): void {
    if (--fragment.users > 0) return;
    this.#counts.forgotten++;
    // Its recipe may live on in a plan.
    fragment.bytes = NO_BYTES;
    fragment.resource = undefined;
    fragment.joined = undefined;
    const names = this.#known.get(fragment.build);
    const variants = names?.get(fragment.name);
    variants?.splice(variants.indexOf(fragment), 1);
    if (variants?.length === 0) names?.delete(fragment.name);
    if (names?.size === 0) this.#known.delete(fragment.build);
    for (const part of fragment.parts) this.#release(part);
  }
}

const NO_BYTES = new Uint8Array();
const NO_PARTS: readonly Recipe[] = [];
const EMPTY = { joined: undefined, bytes: NO_BYTES, resource: undefined, users: 1 };

function bytesOf(parts: readonly Fragment[]): readonly Uint8Array[] {
  return parts.map(({ bytes }) => bytes);
}

/** What the parts were joined to the last time, if that is still known. */
function joinedBefore(hint: Fragment | undefined): JoinedBefore | undefined {
  if (hint?.joined === undefined) return undefined;
  const { bytes, joined } = hint;
  return { ...joined, bytes: bytes.subarray(bytes.length - joinedLength(joined)) };
}

function isSame(left: object, right: object): boolean {
  if (left === right) return true;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => isSameField(Reflect.get(left, key), Reflect.get(right, key)));
}

function isSameField(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  return Array.isArray(left) && Array.isArray(right) && hasSameItems(left, right);
}
