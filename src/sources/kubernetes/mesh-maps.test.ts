import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_MESH_FILE, readMeshFile } from "../file/mesh-file.ts";
import { NO_NETWORKS_FILE } from "../file/networks-file.ts";
import { MeshMaps } from "./mesh-maps.ts";

const map = (name: string, data: object, namespace = "istio-system") => ({ metadata: { name, namespace }, data });
const mapsWith = (sharedName?: string) => new MeshMaps({ namespace: "istio-system", name: "istio", sharedName });
const network = (name: string) => JSON.stringify({ networks: { [name]: { endpoints: [] } } });

test("what the own ConfigMap leaves out comes from the shared one", () => {
  const maps = mapsWith("shared");
  maps.replace([
    map("istio", { mesh: "accessLogFile: /own\ntrustDomainAliases: [a]\ndefaultConfig: {concurrency: 3}" }),
    map("shared", {
      mesh: "accessLogFile: /shared\naccessLogEncoding: JSON\ntrustDomainAliases: [b]\ndefaultConfig: {concurrency: 1, statusPort: 7}",
    }),
  ]);
  const { accessLogFile, accessLogEncoding, trustDomainAliases, defaultConfig } = maps.effective();
  assert.deepEqual([accessLogFile, accessLogEncoding, trustDomainAliases], ["/own", "JSON", ["a", "b"]]);
  assert.deepEqual([defaultConfig.concurrency, defaultConfig.statusPort], [3, 7]);
});

test("networks of the shared one go first", () => {
  const maps = mapsWith("shared");
  const named = () => Object.keys(maps.effective().networks ?? {});
  maps.replace([map("istio", { mesh: "{}", meshNetworks: network("own") }), map("shared", { mesh: "{}" })]);
  assert.deepEqual(named(), ["own"]);
  maps.put(map("shared", { mesh: "{}", meshNetworks: network("shared") }));
  assert.deepEqual(named(), ["shared"]);
});

test("a shared one counts only by its name and in the namespace of the control plane", () => {
  const shared = map("shared", { mesh: "accessLogFile: /shared" });
  const maps = mapsWith();
  maps.replace([shared]);
  assert.equal(maps.effective().accessLogFile, "");
  const others = mapsWith("shared");
  others.replace([map("shared", shared.data, "default")]);
  assert.equal(others.effective().accessLogFile, "");
});

test("a shared one is under a file too, and under a ConfigMap that is not there", () => {
  const maps = mapsWith("shared");
  maps.replace([map("shared", { mesh: "accessLogFile: /shared\naccessLogEncoding: JSON" })]);
  assert.equal(maps.effective().accessLogFile, "/shared");
  const file = { mesh: readMeshFile("f", "accessLogFile: /file", NO_MESH_FILE), networks: NO_NETWORKS_FILE };
  assert.deepEqual([maps.effective(file).accessLogFile, maps.effective(file).accessLogEncoding], ["/file", "JSON"]);
});

test("errors are those of the ConfigMap that has them, and what it said last holds", () => {
  const maps = mapsWith("shared");
  maps.replace([map("istio", { mesh: "{}" }), map("shared", { mesh: "accessLogFile: /one" })]);
  maps.put(map("shared", { mesh: "accessLogFile: [" }));
  assert.deepEqual(
    maps.problems(false).map(({ origin, severity }) => [origin?.file, severity]),
    [["ConfigMap/istio-system/shared", "error"]],
  );
  assert.equal(maps.effective().accessLogFile, "/one");
  maps.put(map("istio", { mesh: "accessLogFile: 7" }));
  assert.equal(maps.problems(false).length, 2);
  assert.equal(maps.problems(true).length, 1);
});

test("a ConfigMap that goes leaves what it said", () => {
  const maps = mapsWith("shared");
  maps.replace([map("istio", { mesh: "accessLogFile: /own" })]);
  maps.remove(map("istio", {}));
  assert.equal(maps.effective().accessLogFile, "/own");
  assert.deepEqual(
    maps.problems(false).map(({ severity }) => severity),
    ["warning"],
  );
});
