/** Whatever configuration passes our checks, a real Envoy accepts what becomes of it, from whatever state it comes. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import fc from "fast-check";
import { DEFAULT_MESH_CONFIG } from "#config/mesh-config.ts";
import { createLogger } from "#lib/log.ts";
import { memorySource } from "#sources/memory.ts";
import { AdsServer } from "#xds/ads-server.ts";
import type { XdsMetric } from "#xds/metrics.ts";
import { translatedParts } from "#xds/translated-parts.ts";
import { CANNOT_ISOLATE, type EnvoyNode, IsolatedEnvoy } from "../support/isolated-envoy.ts";
import { randomMesh } from "./random-mesh.ts";

const MESHES = Number(process.env.RANDOM_MESHES ?? 25);
const SEED = Number(process.env.RANDOM_SEED ?? 1);
const PATIENCE_MS = 20_000;

const NODES: readonly EnvoyNode[] = [
  node("sidecar", { ip: "10.9.1.1", name: "web-v1", namespace: "default", labels: { app: "web", version: "v1" } }),
  node("sidecar", { ip: "10.9.2.2", name: "api-v1", namespace: "prod", labels: { app: "api", version: "v2" } }),
  node("router", { ip: "10.9.3.3", name: "gateway-1", namespace: "istio-system", labels: { istio: "ingressgateway" } }),
];

test("Envoy accepts what becomes of random meshes, one after the other", { skip: CANNOT_ISOLATE }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "ads-"));
  const rejections: string[] = [];
  const warnings = createLogger({ write: (line) => void rejections.push(line), levels: { default: "warn" } });
  let converged = 0;
  const observe = (name: XdsMetric) => {
    if (name === "pilot_proxy_convergence_time") converged++;
  };
  const source = memorySource({ mesh: { ...DEFAULT_MESH_CONFIG, accessLogFile: "/dev/null" } });
  const metrics = { count: () => undefined, set: () => undefined, observe };
  const server = new AdsServer({ source, initial: source.current(), partsOf: translatedParts, log: warnings, metrics });
  const stop = new AbortController();
  const running = server.run(stop.signal);
  const grpc = await listen(server, join(folder, "ads"));
  const envoys = NODES.map((described) => new IsolatedEnvoy(described, join(folder, "ads")));
  try {
    await until(() => converged >= NODES.length, "the first configuration is taken", envoys);
    for (const [index, mesh] of fc.sample(randomMesh, { numRuns: MESHES, seed: SEED }).entries()) {
      converged = 0;
      const text = mesh.map((object) => JSON.stringify(object)).join("\n---\n");
      source.write({ "mesh.yaml": text });
      await until(() => converged >= NODES.length, `mesh ${index} of seed ${SEED} is taken`, envoys);
      assert.deepEqual(rejections, [], `mesh ${index} of seed ${SEED}:\n${text}`);
    }
  } finally {
    stop.abort();
    await running;
    grpc.forceShutdown();
    for (const envoy of envoys) await envoy[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
});

interface Workload {
  readonly ip: string;
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

function node(type: "sidecar" | "router", { ip, name, namespace, labels }: Workload): EnvoyNode {
  return {
    id: `${type}~${ip}~${name}.${namespace}~${namespace}.svc.cluster.local`,
    cluster: `${name}.${namespace}`,
    metadata: {
      NAMESPACE: namespace,
      INSTANCE_IPS: ip,
      LABELS: labels,
      SERVICE_ACCOUNT: "default",
      ISTIO_VERSION: "1.29.6",
    },
  };
}

async function listen(server: AdsServer, path: string): Promise<Server> {
  const grpc = new Server();
  const service = server.service(async () => undefined);
  grpc.addService(service.definition, service.implementation);
  await new Promise<void>((resolve, reject) => {
    grpc.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve()));
  });
  return grpc;
}

async function until(condition: () => boolean, what: string, envoys: readonly IsolatedEnvoy[]): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!condition()) {
    for (const envoy of envoys) assert.ok(!envoy.hasEnded, `Envoy ended before ${what}:\n${envoy.output}`);
    assert.ok(performance.now() < end, `not in ${PATIENCE_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
