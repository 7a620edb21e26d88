/** A control plane with all of its ports, in a process of its own, and legitimate callers for them. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import { Callers } from "../../../bench/callers.ts";
import { FloodedProcess } from "../../support/flooded-process.ts";
import { proxyOf } from "../../support/mesh.ts";
import { nodeOf, XdsClient } from "../../support/xds-client.ts";

const PROGRAM = join(import.meta.dirname, "../../../src/bin/pilot-discovery.ts");
const ADDRESSES = ["httpAddr", "grpcAddr", "secureGRPCAddr", "monitoringAddr", "httpsAddr"];
const PATIENCE_MS = 10_000;

/** Ports, by the numbers that they have by default. */
export type ControlPlanePort = "8080" | "15010" | "15012" | "15014" | "15017" | "9876";

const LOGGED: Readonly<Record<ControlPlanePort, RegExp>> = {
  "8080": /starting HTTP service at \S+:(\d+)/,
  "15010": /starting gRPC discovery service at \S+:(\d+)/,
  "15012": /starting secure gRPC discovery service at \S+:(\d+)/,
  "15014": /starting monitoring service at \S+:(\d+)/,
  "15017": /starting webhook service at \S+:(\d+)/,
  "9876": /starting ControlZ at \S+:(\d+)/,
};

export class FloodedControlPlane implements AsyncDisposable {
  readonly process: FloodedProcess;
  readonly #folder: string;
  readonly #callers: Callers;

  private constructor(process: FloodedProcess, folder: string, callers: Callers) {
    this.process = process;
    this.#folder = folder;
    this.#callers = callers;
  }

  static async start(): Promise<FloodedControlPlane> {
    const callers = await Callers.start();
    const folder = mkdtempSync(join(tmpdir(), "flooded-"));
    const config = join(folder, "config");
    mkdirSync(config);
    writeFileSync(join(config, "service.yaml"), SERVICE);
    const free = ADDRESSES.map((name) => `--${name}=127.0.0.1:0`);
    const flags = ["discovery", "--registries=", "--configDir", config, "--ctrlz_port=0", ...free];
    const process = await FloodedProcess.start({
      args: [PROGRAM, ...flags],
      cwd: folder,
      env: { ROOT_CA_DIR: join(folder, "ca"), JWT_RULE: callers.rule },
      ready: /control plane is ready/,
    });
    const started = new FloodedControlPlane(process, folder, callers);
    // What is compiled and allocated once must not count as growth.
    await started.servesPlainText();
    await started.servesTls();
    return started;
  }

  port(port: ControlPlanePort): number {
    return this.process.port(LOGGED[port]);
  }

  get probe(): string {
    return `http://127.0.0.1:${this.port("8080")}/ready`;
  }

  /** A proxy that connects in plain text gets its clusters. */
  async servesPlainText(): Promise<void> {
    using client = new XdsClient(`127.0.0.1:${this.port("15010")}`, { node: NODE, patienceMs: PATIENCE_MS });
    await servedTo(client);
  }

  /** A proxy that connects over TLS, with a token, gets its clusters. */
  async servesTls(): Promise<void> {
    using client = new XdsClient(`127.0.0.1:${this.port("15012")}`, {
      node: NODE,
      patienceMs: PATIENCE_MS,
      root: readFileSync(join(this.#folder, "ca/root-cert.pem"), "utf8"),
      headers: { authorization: `Bearer ${await this.#callers.token("default")}` },
    });
    await servedTo(client);
  }

  token(): Promise<string> {
    return this.#callers.token("default");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process[Symbol.asyncDispose]();
    this.#callers[Symbol.dispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const NODE = nodeOf(proxyOf({ namespace: "default", serviceAccount: "bench" }));

async function servedTo(client: XdsClient): Promise<void> {
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
}

const SERVICE = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews, namespace: default}
spec:
  hosts: [reviews.default.svc.cluster.local]
  addresses: [10.96.0.1]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.2.0.1}]
`;
