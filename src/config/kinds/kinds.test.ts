import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { resourceTypeOf } from "./kind.ts";
import { KINDS, kindsMeant, knownKinds, readVersion, standingOf } from "./kinds.ts";

const FOLDERS = readdirSync(import.meta.dirname, { withFileTypes: true }).filter((entry) => entry.isDirectory());

test("each folder defines one kind, which is in the list", async () => {
  const defined = await Promise.all(
    FOLDERS.map(async ({ name: folder }) => {
      const values: readonly unknown[] = Object.values(await import(`./${folder}/kind.ts`));
      assert.equal(values.length, 1, `${folder}/kind.ts exports one definition`);
      const kind = KINDS.find((known) => known === values[0]);
      assert.ok(kind, `kinds.ts lists the definition of ${folder}/kind.ts`);
      const inKebabCase = kind.name.replace(/(?<=.)[A-Z]/g, "-$&").toLowerCase();
      assert.equal(folder, inKebabCase);
      return kind;
    }),
  );
  assert.deepEqual(new Set(KINDS), new Set(defined));
});

test("no two kinds have the same name or path in the API server", () => {
  const names = KINDS.map(({ group, name }) => `${name}.${group}`);
  const paths = KINDS.map(({ group, plural }) => `${plural}.${group}`);
  assert.equal(new Set(names).size, KINDS.length);
  assert.equal(new Set(paths).size, KINDS.length);
});

test("kinds of Istio come with a definition for API servers, kinds of Kubernetes do not", () => {
  for (const { group, name, crd } of KINDS) assert.equal(crd !== undefined, group.endsWith("istio.io"), name);
});

test("standingOf() tells kinds that have an effect from those that have none", () => {
  const standing = standingOf("networking.istio.io/v1", "VirtualService");
  assert.equal(typeof standing === "object" && standing.kind.name, "VirtualService");
  assert.equal(standingOf("networking.istio.io/v7", "VirtualService"), "unknown");
  assert.equal(standingOf("telemetry.istio.io/v1", "Telemetry"), "not-yet");
  assert.equal(standingOf("apps/v1", "Deployment"), "not-yet");
  assert.equal(standingOf("mizzen.dev/v1alpha1", "Mesh"), "not-ours");
  assert.equal(standingOf("v1", "constructor"), "unknown");
  assert.equal(standingOf("constructor/v1", "name"), "unknown");
  assert.equal(
    knownKinds().some(({ name }) => name === "Telemetry"),
    false,
  );
});

test("a kind is read in a version that it has", () => {
  assert.equal(readVersion("networking.istio.io/v7", "Gateway"), "networking.istio.io/v1");
  assert.equal(readVersion("networking.istio.io/v1beta1", "Gateway"), "networking.istio.io/v1beta1");
  assert.equal(readVersion("networking.istio.io/v7", "EnvoyFilter"), "networking.istio.io/v1alpha3");
  assert.equal(readVersion("example.com/v7", "Gateway"), "example.com/v7");
  assert.deepEqual(kindsMeant("security.istio.io/v1", "serviceentry"), [
    { kind: "ServiceEntry", apiVersion: "networking.istio.io/v1" },
  ]);
});

test("resourceTypeOf() names a kind as the API server does", () => {
  const types = new Map(KINDS.map((kind) => [kind.name, resourceTypeOf(kind)]));
  const node = { group: "", version: "v1", kind: "Node", plural: "nodes", namespaced: false };
  assert.deepEqual(types.get("Node"), node);
  const filter = { group: "networking.istio.io", version: "v1alpha3", kind: "EnvoyFilter", plural: "envoyfilters" };
  assert.deepEqual(types.get("EnvoyFilter"), { ...filter, namespaced: true });
});
