/** Objects with one mistake each, made at random from valid ones. */
import fc from "fast-check";
import { readObjects } from "#sources/document.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Texts that hold one broken object each; the same for the same seed. */
export function brokenTexts(valid: Json, { count, seed }: { readonly count: number; readonly seed: number }): string[] {
  const mistake = fc.oneof(
    { arbitrary: fc.record({ place: fc.nat(), value: fc.constantFrom(...VALUES) }), weight: 3 },
    { arbitrary: fc.record({ place: fc.nat(), rename: fc.constantFrom("x", "_", "-") }), weight: 2 },
    {
      arbitrary: fc.record({ at: fc.nat(), character: fc.constantFrom("", ":", "{", '"', "\t", "]", "\u0001") }),
      weight: 2,
    },
  );
  const texts = fc.sample(mistake, { numRuns: 50 * count, seed }).map((one) => {
    if (!("at" in one)) return JSON.stringify(mistaken(valid, one));
    const text = JSON.stringify(valid, undefined, 1);
    const at = one.at % text.length;
    return text.slice(0, at) + one.character + text.slice(at + (one.at % 2));
  });
  return [...new Set(texts)].filter(isBroken).slice(0, count);
}

const VALUES: readonly Json[] = [5, -1, true, "", "*", "@#!", "65536", [], {}, ["x", 3], { a: 1 }, "10.0.0.0/99", null];

/** Nothing of it has an effect as it stands. A mistake may also make another valid object. */
function isBroken(text: string): boolean {
  const found = readObjects(text);
  return found.length > 0 && found.every(({ object, notYet }) => object === undefined && notYet === undefined);
}

type Mistake = { readonly place: number; readonly value: Json } | { readonly place: number; readonly rename: string };

function mistaken(valid: Json, mistake: Mistake): Json {
  const paths = pathsOf(valid);
  const path = paths[mistake.place % paths.length] ?? [];
  return changed(valid, path, mistake);
}

function pathsOf(value: Json): readonly (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => [[name], ...pathsOf(part).map((path) => [name, ...path])]);
}

function changed(value: Json, [name = "", ...rest]: readonly string[], mistake: Mistake): Json {
  if (Array.isArray(value)) {
    return value.map((item, i) => {
      if (String(i) !== name) return item;
      return rest.length > 0 ? changed(item, rest, mistake) : "value" in mistake ? mistake.value : [item];
    });
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]): [string, Json] => {
      if (key !== name) return [key, part];
      if (rest.length > 0) return [key, changed(part, rest, mistake)];
      return "value" in mistake ? [key, mistake.value] : [`${key}${mistake.rename}`, part];
    }),
  );
}
