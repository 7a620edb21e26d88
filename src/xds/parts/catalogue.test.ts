import assert from "node:assert/strict";
import { test } from "node:test";
import { Slices } from "#lib/async/slices.ts";
import { atOnce } from "#lib/async/steps.ts";
import { SILENT } from "#lib/log/log.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { ENDPOINT_TYPE, LISTENER_TYPE } from "#protocol/messages/type-urls.ts";
import { recipe } from "#translate/recipes/recipe.ts";
import { meshOf } from "../../../test/support/mesh.ts";
import { Catalogue } from "./catalogue.ts";
import type { Part, PartByName, ProxyParts } from "./parts.ts";

const FIRST = meshOf("");
const SECOND: Snapshot = { ...FIRST, version: FIRST.version + 1 };
const build = ({ text }: { readonly text: string }) => Buffer.from(text);
const textRecipe = (name: string, text: string) => recipe({ name, input: { text }, build });
const newCatalogue = () => new Catalogue(new Slices(() => 0, 1), SILENT);

function partsWith(listed: readonly Part[], asked?: PartByName): ProxyParts {
  return {
    types: new Map([[LISTENER_TYPE, listed]]),
    asked: new Map(asked === undefined ? [] : [[ENDPOINT_TYPE, asked]]),
    omittedListeners: new Set(),
  };
}

test("a part that stays is not planned again, and its layer is the same", async () => {
  const catalogue = newCatalogue();
  const planned: string[] = [];
  const part = (text: string, same: boolean): Part => ({
    key: "part",
    plan: () => {
      planned.push(text);
      return atOnce(new Map([[LISTENER_TYPE, [textRecipe("a", text)]]]));
    },
    isSameSince: (before) => same && before === FIRST,
  });
  const at = (parts: ProxyParts, version: number, snapshot: Snapshot) =>
    catalogue.layers(parts, LISTENER_TYPE, { version, snapshot, names: new Set() });
  const first = partsWith([part("one", true)]);
  catalogue.use(first, undefined);
  const [before] = await at(first, 1, FIRST);
  const [kept] = await at(partsWith([part("two", true)]), 2, SECOND);
  assert.equal(kept, before);
  const [changed] = await at(partsWith([part("three", false)]), 3, SECOND);
  assert.equal(Buffer.from(changed?.get("a")?.value ?? []).toString(), "three");
  assert.deepEqual(planned, ["one", "three"]);
});

test("of resources that are asked for by name only those are planned again that may have changed", async () => {
  const catalogue = newCatalogue();
  const planned: string[] = [];
  const part = (text: string, changed: readonly string[]): PartByName => ({
    key: "part",
    plan: (name) => {
      planned.push(`${name} ${text}`);
      return textRecipe(name, text);
    },
    changedSince: () => (name) => changed.includes(name),
  });
  const at = (parts: ProxyParts, version: number) =>
    catalogue.layers(parts, ENDPOINT_TYPE, { version, snapshot: FIRST, names: new Set(["a", "b"]) });
  const first = partsWith([], part("one", []));
  catalogue.use(first, undefined);
  const [before] = await at(first, 1);
  const [kept] = await at(partsWith([], part("two", [])), 2);
  assert.equal(kept, before);
  const [after] = await at(partsWith([], part("three", ["b"])), 3);
  const textOf = (name: string) => Buffer.from(after?.get(name)?.value ?? []).toString();
  assert.deepEqual([textOf("a"), textOf("b")], ["one", "three"]);
  assert.deepEqual(planned, ["a one", "b one", "b three"]);
  catalogue.use(undefined, first);
  assert.deepEqual(catalogue.size, { parts: 0, resources: 0 });
});
