/** Real Envoys of several roles on our xDS server, to which one configuration after the other is pushed. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import { createLogger } from "#lib/log/log.ts";
import { memorySource } from "#sources/memory.ts";
import { AdsServer } from "#xds/ads-server.ts";
import type { XdsMetric } from "#xds/metrics/metrics.ts";
import { translatedParts } from "#xds/parts/translated-parts.ts";
import { type ServedMethods, serveMethods } from "./grpc-server.ts";
import { type EnvoyNode, IsolatedEnvoy } from "./isolated-envoy.ts";

const PATIENCE_MS = 60_000;
/** Whether a patch fits something, and whether Secrets are there that gateways name, is not what proxies have to say. */
const NOT_OF_PROXIES = /patch changes nothing|asks for secrets that are not there/;

export class EnvoyRig implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "ads-"));
  readonly #source = memorySource();
  readonly #stop = new AbortController();
  #grpc: ServedMethods | undefined;
  readonly #server: AdsServer;
  readonly #running: Promise<void>;
  readonly #envoys: IsolatedEnvoy[] = [];
  #complaints: string[] = [];
  #converged = 0;

  private constructor() {
    const write = (line: string) => void (NOT_OF_PROXIES.test(line) || this.#complaints.push(line));
    const log = createLogger({ write, levels: { all: "warn" } });
    const observe = (name: XdsMetric) => {
      if (name === "pilot_proxy_convergence_time") this.#converged++;
    };
    const metrics = { count: () => undefined, set: () => undefined, observe };
    const initial = this.#source.current();
    const mesh = { source: this.#source, initial, partsOf: translatedParts };
    this.#server = new AdsServer({ ...mesh, log, metrics, checksIdentity: false });
    this.#running = this.#server.run(this.#stop.signal);
  }

  /** Envoys with these nodes, connected and waiting for their first real configuration. */
  static async start(nodes: readonly EnvoyNode[]): Promise<EnvoyRig> {
    const rig = new EnvoyRig();
    const socket = join(rig.#folder, "ads");
    rig.#grpc = await serveMethods(
      rig.#server.service(async () => undefined),
      { socketFile: socket },
    );
    for (const node of nodes) rig.#envoys.push(new IsolatedEnvoy(node, socket));
    await rig.#settled("the first configuration");
    return rig;
  }

  /** Replaces the whole configuration; gives what the proxies rejected or the server complained about. */
  async push(yaml: string, mesh: MeshConfig = DEFAULT_MESH_CONFIG): Promise<readonly string[]> {
    this.#converged = 0;
    this.#complaints = [];
    const before = this.#source.current();
    // Removed first: a broken object must not have a last good version of a former mesh to stand in for it.
    this.#source.write({ "mesh.yaml": undefined });
    this.#source.setMesh({ ...mesh, accessLogFile: "/dev/null" });
    this.#source.write({ "mesh.yaml": yaml });
    if (this.#source.current() !== before) await this.#settled("the configuration");
    return this.#complaints;
  }

  /** The body of an admin page of the first Envoy. */
  async admin(path: string): Promise<string> {
    return (await this.#envoys[0]?.admin(path)) ?? "";
  }

  async #settled(what: string): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    // One proxy may converge twice before another does so once.
    while (this.#converged < this.#envoys.length || !this.#server.hasSentAll) {
      for (const envoy of this.#envoys)
        assert.ok(!envoy.hasEnded, `Envoy ended before it took ${what}:\n${envoy.output}`);
      assert.ok(
        performance.now() < end,
        `not in ${PATIENCE_MS} ms: every proxy has ${what}\n${this.#complaints.join("")}`,
      );
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#grpc?.stop();
    for (const envoy of this.#envoys) await envoy[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export interface NodeOptions {
  readonly ip: string;
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** The node of a proxy as its agent would write it. */
export function envoyNode(type: "sidecar" | "router", { ip, name, namespace, labels }: NodeOptions): EnvoyNode {
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
