/** Whatever configuration passes our checks, a real Envoy accepts what becomes of it, from whatever state it comes. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { EnvoyRig, envoyNode } from "../support/envoy-rig.ts";
import { CANNOT_ISOLATE } from "../support/isolated-envoy.ts";
import { randomMesh } from "./random-mesh.ts";

const MESHES = Number(process.env.RANDOM_MESHES ?? 25);
const SEED = Number(process.env.RANDOM_SEED ?? 1);
const SAMPLES = process.env.ISTIO_SAMPLES ?? "";
const RECORDED = join(resolve(process.env.CONFORMANCE ?? "../shared/conformance"), "pilot/xds-golden");
const NOTHING_RECORDED = existsSync(RECORDED) ? false : `no folder ${RECORDED}: set CONFORMANCE`;

test("Envoy accepts what becomes of random meshes, one after the other", { skip: CANNOT_ISOLATE }, async () => {
  await using rig = await EnvoyRig.start([
    envoyNode("sidecar", {
      ip: "10.9.1.1",
      name: "web-v1",
      namespace: "default",
      labels: { app: "web", version: "v1" },
    }),
    envoyNode("sidecar", { ip: "10.9.2.2", name: "api-v1", namespace: "prod", labels: { app: "api", version: "v2" } }),
    envoyNode("router", {
      ip: "10.9.3.3",
      name: "gateway-1",
      namespace: "istio-system",
      labels: { istio: "ingressgateway" },
    }),
  ]);
  for (const [index, mesh] of fc.sample(randomMesh, { numRuns: MESHES, seed: SEED }).entries()) {
    const yaml = mesh.map((object) => JSON.stringify(object)).join("\n---\n");
    assert.deepEqual(await rig.push(yaml), [], `mesh ${index} of seed ${SEED}:\n${yaml}`);
  }
});

test("Envoy accepts what becomes of real Istio's own inputs", {
  skip: CANNOT_ISOLATE || NOTHING_RECORDED,
}, async () => {
  await using rig = await EnvoyRig.start([
    envoyNode("sidecar", { ip: "1.1.1.1", name: "app-1", namespace: "default", labels: { app: "app" } }),
    envoyNode("sidecar", {
      ip: "10.10.0.6",
      name: "productpage-v1",
      namespace: "default",
      labels: { app: "productpage" },
    }),
    envoyNode("router", {
      ip: "2.2.2.2",
      name: "gateway-1",
      namespace: "istio-system",
      labels: { istio: "ingressgateway" },
    }),
  ]);
  for (const file of globSync("{scenarios,simulation,benchmarks,configgen}/*.json", { cwd: RECORDED }).sort()) {
    assert.deepEqual(await rig.push(inputOf(file)), [], file);
  }
});

/** Istio's samples, or any folder of configuration: runs where `ISTIO_SAMPLES` names one. */
if (SAMPLES !== "")
  test("Envoy accepts what becomes of each file of a folder, and of all of them", {
    skip: CANNOT_ISOLATE,
  }, async () => {
    const labels = { app: "httpbin", version: "v1" };
    await using rig = await EnvoyRig.start([
      envoyNode("sidecar", { ip: "10.9.1.1", name: "httpbin-1", namespace: "default", labels }),
      ...["ingressgateway", "egressgateway", "eastwestgateway"].map((istio, i) =>
        envoyNode("router", { ip: `10.9.2.${i + 1}`, name: istio, namespace: "istio-system", labels: { istio } }),
      ),
    ]);
    const files = globSync("**/*.yaml", { cwd: SAMPLES }).sort();
    const texts = files.map((file) => readFileSync(join(SAMPLES, file), "utf8"));
    const isRejection = (line: string) => line.includes("proxy rejected");
    for (const [i, text] of texts.entries()) {
      assert.deepEqual((await rig.push(text)).filter(isRejection), [], files[i]);
    }
    assert.deepEqual((await rig.push(texts.join("\n---\n"))).filter(isRejection), []);
  });

interface RecordedInput {
  readonly configs?: readonly object[];
  /** Objects, or the name of a file with them. */
  readonly kubernetes?: readonly object[] | string;
  readonly kubernetesYAML?: string;
}

/** The objects of a recorded case, as YAML documents. */
function inputOf(file: string): string {
  const read = (path: string) => JSON.parse(readFileSync(join(RECORDED, path), "utf8"));
  const { input = {}, inputYAML = "" }: { input?: RecordedInput; inputYAML?: string } = read(file);
  const { configs = [], kubernetes = [], kubernetesYAML = "" } = input;
  const referred: readonly object[] =
    typeof kubernetes === "string" ? read(join(dirname(file), kubernetes)) : kubernetes;
  const objects = [configs, referred].flat().map((object) => JSON.stringify(object));
  return [...objects, kubernetesYAML, inputYAML].filter((text) => text !== "").join("\n---\n");
}
