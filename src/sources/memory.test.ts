import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_MESH_CONFIG } from "#config/mesh-config.ts";
import { memorySource } from "./memory.ts";
import { entryYaml, serviceYaml, testTextSource } from "./source-contract.ts";

testTextSource("memory source", async (files) => {
  const source = memorySource({ files });
  return { source, write: source.write, [Symbol.asyncDispose]: async () => undefined };
});

test("memory source: a new mesh config makes a snapshot", () => {
  const source = memorySource({ files: { "a.yaml": serviceYaml("a") } });
  const { services } = source.current();
  source.setMesh({ ...DEFAULT_MESH_CONFIG, accessLogFile: "/dev/stdout" });
  assert.equal(source.current().mesh.accessLogFile, "/dev/stdout");
  assert.deepEqual(source.current().services, services);
});

test("memory source: an empty revision takes all objects", () => {
  const text = entryYaml("a", "canary");
  assert.equal(memorySource({ files: { "a.yaml": text }, revision: "" }).objects().length, 1);
  assert.equal(memorySource({ files: { "a.yaml": text }, revision: "canary" }).objects().length, 1);
  assert.equal(memorySource({ files: { "a.yaml": text } }).objects().length, 0);
});
