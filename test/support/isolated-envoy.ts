/**
 * A real Envoy of its own network namespace, fed by an xDS server on a unix socket: it may bind any port, and two of them
 * never meet. Nothing of the namespace is left when the process ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ENVOY, get, http2Cluster, NO_ENVOY } from "./ads-envoy.ts";

/** Why Envoys cannot be isolated here; false when they can. */
export const CANNOT_ISOLATE =
  NO_ENVOY ||
  (process.getuid?.() === 0 && existsSync("/proc/self/ns/net") ? false : "needs root for a network namespace");

export interface EnvoyNode {
  readonly id: string;
  readonly cluster: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export class IsolatedEnvoy implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "envoy-"));
  readonly #process: ChildProcess;
  #output = "";

  constructor(node: EnvoyNode, adsSocket: string) {
    const bootstrap = JSON.stringify(bootstrapOf(node, { admin: join(this.#folder, "admin"), ads: adsSocket }));
    const script = `ip link set lo up && exec "$0" --config-yaml "$1" --concurrency 1 --disable-hot-restart -l warning`;
    this.#process = spawn("unshare", ["--net", "sh", "-c", script, ENVOY, bootstrap], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.#output += chunk.toString();
      });
    }
  }

  /** What it printed so far. */
  get output(): string {
    return this.#output;
  }

  get hasEnded(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  /** The body of an admin page. */
  async admin(path: string): Promise<string> {
    return (await get(join(this.#folder, "admin"), path)).body;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.hasEnded) {
      const exited = new Promise((resolve) => this.#process.once("exit", resolve));
      this.#process.kill("SIGKILL");
      await exited;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function bootstrapOf(node: EnvoyNode, sockets: { readonly admin: string; readonly ads: string }): object {
  const ads = { ads: {}, initial_fetch_timeout: "0s", resource_api_version: "V3" };
  return {
    node,
    admin: { address: { pipe: { path: sockets.admin } } },
    dynamic_resources: {
      ads_config: {
        api_type: "DELTA_GRPC",
        transport_api_version: "V3",
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: "xds-grpc" } }],
      },
      cds_config: ads,
      lds_config: ads,
    },
    // Nobody serves secrets here: what waits for them warms, which is not what these tests look at.
    static_resources: {
      clusters: [pipeCluster("xds-grpc", sockets.ads), pipeCluster("sds-grpc", "/nowhere"), zipkin()],
    },
  };
}

function pipeCluster(name: string, path: string): object {
  return http2Cluster(name, { pipe: { path } });
}

function zipkin(): object {
  return { name: "zipkin", type: "STATIC", connect_timeout: "1s", load_assignment: { cluster_name: "zipkin" } };
}
