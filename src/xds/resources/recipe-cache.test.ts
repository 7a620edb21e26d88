import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { FilterChainSchema } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { LISTENER_TYPE } from "#protocol/messages/type-urls.ts";
import { type Recipe, recipe } from "#translate/recipes/recipe.ts";
import { originsOf } from "./built-resource.ts";
import { RecipeCache } from "./recipe-cache.ts";

let builds: string[] = [];
interface TextInput {
  readonly text: string;
  readonly objects?: readonly object[];
}
const buildText = ({ text }: TextInput) => {
  builds.push(text);
  return Buffer.from(text);
};
const textRecipe = (name: string, input: TextInput, parts: readonly Recipe[] = []) =>
  recipe({ name, input, build: buildText, ...(parts.length > 0 && { parts: { field: 3, recipes: parts } }) });
const acquire = (cache: RecipeCache, wanted: Recipe) => cache.acquire(LISTENER_TYPE, wanted);

test("a recipe is built once for identical inputs, whoever asks", () => {
  builds = [];
  const cache = new RecipeCache();
  const object = {};
  const one = acquire(cache, textRecipe("a", { text: "x", objects: [object] }));
  const two = acquire(cache, textRecipe("a", { text: "x", objects: [object] }));
  assert.equal(one, two);
  assert.deepEqual(builds, ["x"]);
});

test("an equal object that is another one is another input", () => {
  const cache = new RecipeCache();
  const one = acquire(cache, textRecipe("a", { text: "x", objects: [{}] }));
  const two = acquire(cache, textRecipe("a", { text: "x", objects: [{}] }));
  assert.notEqual(one, two);
  assert.equal(one.version, two.version, "the version depends on the bytes alone");
});

test("lists differ by length, order and elements, and fields by their names", () => {
  const cache = new RecipeCache();
  const [a, b] = [{}, {}];
  const inputs: TextInput[] = [
    { text: "x", objects: [a, b] },
    { text: "x", objects: [b, a] },
    { text: "x", objects: [a] },
    { text: "x" },
    { text: "y" },
  ];
  assert.equal(new Set(inputs.map((input) => acquire(cache, textRecipe("n", input)))).size, inputs.length);
});

test("of a message in parts only the part that changed is built again", () => {
  const cache = new RecipeCache();
  const chain = (name: string) =>
    recipe({
      name,
      input: { name },
      build: buildChain,
    });
  let chains = 0;
  function buildChain({ name }: { name: string }) {
    chains++;
    return toBinary(FilterChainSchema, create(FilterChainSchema, { name }));
  }
  const buildListener = ({ name }: { name: string }) => toBinary(ListenerSchema, create(ListenerSchema, { name }));
  const listener = (...names: string[]) =>
    recipe({ name: "l", input: { name: "l" }, build: buildListener, parts: { field: 3, recipes: names.map(chain) } });
  const before = acquire(cache, listener("a", "b", "c"));
  const after = cache.acquire(LISTENER_TYPE, listener("a", "new", "b", "c"), before);
  assert.equal(chains, 4);
  const message = fromBinary(ListenerSchema, after.value);
  assert.deepEqual([message.name, message.filterChains.map(({ name }) => name)], ["l", ["a", "new", "b", "c"]]);
  for (const resource of [before, after]) cache.release(resource);
  assert.equal(cache.builders, 0);
});

test("what nobody holds is forgotten, and built again when asked for", () => {
  builds = [];
  const cache = new RecipeCache();
  const wanted = textRecipe("a", { text: "x" }, [textRecipe("p", { text: "part" })]);
  const one = acquire(cache, wanted);
  const two = acquire(cache, wanted);
  cache.release(one);
  assert.equal(cache.size, 1);
  cache.release(two);
  assert.deepEqual([cache.size, cache.builders], [0, 0]);
  assert.throws(() => cache.release(one), /Cannot release "a": nobody holds it/);
  acquire(cache, wanted);
  assert.deepEqual(builds, ["part", "x", "part", "x"]);
});

test("a builder that throws leaves nothing behind", () => {
  const cache = new RecipeCache();
  const broken = () => {
    throw new Error("bug");
  };
  const parts = { field: 1, recipes: [textRecipe("p", { text: "part" })] };
  assert.throws(() => acquire(cache, recipe({ name: "a", input: {}, build: broken, parts })), /bug/);
  assert.deepEqual([cache.size, cache.builders], [0, 0]);
});

test("however resources are acquired and released, they equal what is built without a cache, and nothing remains", () => {
  const objects = [{}, {}];
  const input = fc.record({
    text: fc.constantFrom("x", "y"),
    objects: fc.array(fc.constantFrom(...objects), { maxLength: 2 }),
  });
  const piece = fc.record({ name: fc.constantFrom("a", "b"), input, parts: fc.array(input, { maxLength: 3 }) });
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const cache = new RecipeCache();
      let hint: ReturnType<typeof acquire> | undefined;
      const held = pieces.map(({ name, input: own, parts }) => {
        const wanted = textRecipe(
          name,
          own,
          parts.map((part, index) => textRecipe(`p${index}`, part)),
        );
        hint = cache.acquire(LISTENER_TYPE, wanted, hint);
        const plain = acquire(new RecipeCache(), wanted);
        assert.deepEqual(
          [hint.name, hint.version, Buffer.from(hint.value)],
          [name, plain.version, Buffer.from(plain.value)],
        );
        return hint;
      });
      for (const resource of held) cache.release(resource);
      assert.deepEqual([cache.size, cache.builders], [0, 0]);
    }),
  );
});

test("originsOf() lists the configuration objects of a resource and its parts", () => {
  const object = (name: string) => ({
    kind: "VirtualService",
    metadata: { namespace: "ns", name },
    spec: {},
    origin: undefined,
  });
  const parts = [textRecipe("p", { text: "", objects: [object("b"), {}] })];
  assert.deepEqual(originsOf(textRecipe("a", { text: "", objects: [object("a")] }, parts)), [
    "VirtualService/ns/a",
    "VirtualService/ns/b",
  ]);
  const listener = { ...textRecipe("l", { text: "" }), origins: ["Gateway/ns/g"] };
  assert.deepEqual(originsOf(listener), ["Gateway/ns/g"]);
});

test("a resource that was made from the one before is the same as one made from nothing", () => {
  const names = fc.uniqueArray(fc.constantFrom("a", "bb", "ccc", "dd", "e", "f"), { maxLength: 6 });
  const recipes = new Map<string, Recipe>();
  const part = (name: string) => {
    const made = recipes.get(name) ?? textRecipe(name, { text: name });
    recipes.set(name, made);
    return made;
  };
  const whole = (parts: readonly string[]) => textRecipe("whole", { text: "own" }, parts.map(part));
  fc.assert(
    fc.property(fc.array(names, { minLength: 2, maxLength: 6 }), (steps) => {
      const cache = new RecipeCache();
      let last: ReturnType<typeof acquire> | undefined;
      for (const parts of steps) {
        const next = cache.acquire(LISTENER_TYPE, whole(parts), last);
        if (last !== undefined) cache.release(last);
        last = next;
        const anew = acquire(new RecipeCache(), whole(parts));
        assert.deepEqual([next.version, Buffer.from(next.frame)], [anew.version, Buffer.from(anew.frame)]);
      }
      if (last !== undefined) cache.release(last);
      assert.deepEqual([cache.size, cache.builders], [0, 0]);
    }),
  );
});
