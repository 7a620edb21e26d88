import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Slices } from "#lib/async/slices.ts";
import { changesBetween } from "#protocol/changes.ts";
import { ENDPOINT_TYPE } from "#protocol/messages/type-urls.ts";
import { type Recipe, recipe } from "#translate/recipes/recipe.ts";
import type { BuiltResource } from "./built-resource.ts";
import { RecipeCache } from "./recipe-cache.ts";
import { AskedLayer, ListedLayer } from "./resource-layer.ts";

const build = ({ text }: { readonly text: string }) => Buffer.from(text);
const NAMES = ["a", "b", "c", "d", "e"];

/** Texts of the resources that exist, by name. */
type World = ReadonlyMap<string, string>;
const planOf = (world: World) => (name: string) => {
  const text = world.get(name);
  return text === undefined ? undefined : recipe({ name, input: { text }, build });
};

/** Each step of its work is a slice by itself, so that others have their turn in between. */
function newContext() {
  const cache = new RecipeCache();
  return { typeUrl: ENDPOINT_TYPE, cache, slices: new Slices(() => 0, 0), onBroken: () => undefined };
}

function newLayer(world: World) {
  const context = newContext();
  return { cache: context.cache, asked: new AskedLayer(context, planOf(world)) };
}

const textOf = (resource: BuiltResource | undefined) => resource && Buffer.from(resource.value).toString();
const worlds = fc
  .dictionary(fc.constantFrom(...NAMES), fc.constantFrom("1", "2"))
  .map((texts): World => new Map(Object.entries(texts)));

test("a layer that follows the world tells what is new, also of what is found while it changes, and lets go of all", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(worlds, { minLength: 2, maxLength: 5 }),
      fc.subarray(NAMES),
      fc.subarray(NAMES),
      async ([first = new Map(), ...others], early, late) => {
        const { cache, asked } = newLayer(first);
        await asked.prepare(new Set(early));
        let last = first;
        let awaited = early;
        for (const world of others) {
          const before = asked.layer;
          const found = [...before.keys()];
          const updating = asked.update(planOf(world), (name) => last.get(name) !== world.get(name));
          for (const name of late) before.get(name);
          await updating;
          for (const name of NAMES) assert.equal(textOf(asked.layer.get(name)), world.get(name));
          const { changed, removed } = changesBetween([before], [asked.layer]);
          const isOther = (name: string) => last.get(name) !== world.get(name);
          const hasCome = (name: string) => !last.has(name) && world.has(name);
          if (awaited.some(hasCome)) assert.notEqual(asked.layer, before);
          assert.deepEqual(
            found.filter((name) => changed.has(name) || removed.has(name)),
            found.filter(isOther),
          );
          last = world;
          awaited = NAMES;
        }
        asked.release();
        assert.equal(cache.size, 0);
      },
    ),
  ));

test("a name that comes to exist is in a new layer, though nothing else changed: somebody may wait for it", async () => {
  const { cache, asked } = newLayer(new Map([["a", "1"]]));
  for (const name of ["a", "b"]) asked.layer.get(name);
  const before = asked.layer;
  await asked.update(planOf(new Map([["a", "1"]])));
  assert.equal(asked.layer, before);
  const both = new Map([
    ["a", "1"],
    ["b", "1"],
  ]);
  await asked.update(planOf(both));
  assert.deepEqual([...changesBetween([before], [asked.layer]).changed], ["b"]);
  assert.equal(before.get("b"), undefined);
  asked.release();
  assert.equal(cache.size, 0);
});

test("who asked for more names than are remembered looks again after each change", async () => {
  const { asked } = newLayer(new Map());
  for (let i = 0; i < 1001; i++) asked.layer.get(`made-up-${i}`);
  const before = asked.layer;
  await asked.update(planOf(new Map([["made-up-1000", "1"]])));
  assert.notEqual(asked.layer, before);
});

test("names that were built ahead are known as such until something changes", async () => {
  const { asked } = newLayer(new Map([["a", "1"]]));
  const names = new Set(NAMES);
  await asked.prepare(names);
  assert.ok(asked.isPrepared(names));
  await asked.update(planOf(new Map([["a", "2"]])));
  assert.ok(!asked.isPrepared(names));
});

/** A list of texts, each with the name that it is for; plans keep the recipe of a text or make another that says the same. */
const lists = fc.array(
  fc.record({ name: fc.constantFrom(...NAMES), text: fc.constantFrom("1", "2"), anew: fc.boolean() }),
  {
    maxLength: 7,
  },
);

test("a listed layer is what its recipes say, tells what is new, and lets go of all, whichever recipes are kept", () =>
  fc.assert(
    fc.asyncProperty(fc.array(lists, { minLength: 1, maxLength: 6 }), async (plans) => {
      const context = newContext();
      const listed = new ListedLayer(context);
      const other = new ListedLayer(context);
      const known = new Map<string, Recipe>();
      for (const plan of plans) {
        const recipes = plan.map(({ name, text, anew }) => {
          const made = (anew ? undefined : known.get(name + text)) ?? recipe({ name, input: { text }, build });
          known.set(name + text, made);
          return made;
        });
        const before = listed.layer;
        const texts = textsOf(before);
        await listed.update(recipes);
        // Another view that has the same shares the resources, and may let go of them first.
        await other.update([...recipes]);
        const wanted = new Map(plan.toReversed().map(({ name, text }) => [name, text]));
        assert.deepEqual(textsOf(listed.layer), new Map([...wanted].sort()));
        const { changed, removed } = changesBetween([before], [listed.layer]);
        const isOther = (name: string) => wanted.has(name) && texts.get(name) !== wanted.get(name);
        assert.deepEqual([...changed].sort(), NAMES.filter(isOther));
        assert.deepEqual(
          [...removed].sort(),
          [...texts.keys()].filter((name) => !wanted.has(name)),
        );
        assert.equal(before === listed.layer, changed.size + removed.size === 0);
        await other.update([]);
      }
      listed.release();
      assert.equal(context.cache.size, 0);
      assert.equal(context.cache.builders, 0);
    }),
  ));

function textsOf(layer: ListedLayer["layer"]): ReadonlyMap<string, string | undefined> {
  return new Map([...layer.keys()].sort().map((name) => [name, textOf(layer.get(name))]));
}
