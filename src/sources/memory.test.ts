import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
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

test("memory source: entries that registered themselves are objects until they leave, unless written by hand", async () => {
  const written = (address: string) => `apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: vm}
spec: {address: ${address}}
`;
  const source = memorySource({ files: { "a.yaml": written("10.0.0.1") } });
  const addresses = () => source.objects().map(({ spec }) => (spec as { readonly address: string }).address);
  const metadata = { name: "vm", namespace: "default", labels: {}, annotations: {}, createdAt: 0 };
  const entry = { kind: "WorkloadEntry", metadata, spec: { address: "10.0.0.2" }, origin: undefined };
  await source.put(entry, undefined);
  assert.deepEqual(addresses(), ["10.0.0.1"]);
  source.write({ "a.yaml": undefined });
  assert.deepEqual(addresses(), ["10.0.0.2"]);
  await source.remove(entry);
  assert.deepEqual(addresses(), []);
});

test("memory source: what is reported of a written entry holds until it is written otherwise", async () => {
  const text =
    "apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: vm}\nspec: {address: 10.0.0.1}\n";
  const source = memorySource({ files: { "a.yaml": text } });
  const [written] = source.objects();
  assert.ok(written);
  const status = { conditions: [{ type: "Healthy", status: "True" }] };
  await source.put({ ...written, spec: written.spec as object, status }, undefined);
  assert.deepEqual(
    source.objects().map((object) => object.status),
    [status],
  );
  source.write({ "a.yaml": text.replace("10.0.0.1", "10.0.0.2") });
  assert.deepEqual(
    source.objects().map((object) => object.status),
    [undefined],
  );
});
