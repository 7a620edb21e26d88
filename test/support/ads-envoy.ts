/** A real Envoy that takes everything from an xDS server, through a relay that a test can cut. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const ENVOY = join(import.meta.dirname, "../../.cache/envoy");
/** Why a test that needs Envoy cannot run; false when it can. */
export const NO_ENVOY = existsSync(ENVOY) ? false : "no Envoy: run make setup";

/** Delta, or state of the world. */
export type ApiType = "DELTA_GRPC" | "GRPC";

export interface AdsEnvoyOptions {
  readonly apiType?: ApiType;
  /** Fields of its node; a sidecar of `default` otherwise. */
  readonly node?: object;
}

const PATIENCE_MS = 60_000;

export class AdsEnvoy implements AsyncDisposable {
  readonly #folder: string;
  readonly #process: ChildProcess;
  readonly relay: Relay;
  #output = "";

  private constructor(folder: string, relay: Relay, options: AdsEnvoyOptions) {
    this.#folder = folder;
    this.relay = relay;
    const bootstrap = JSON.stringify(bootstrapOf(join(folder, "admin"), relay.port, options));
    const flags = ["--config-yaml", bootstrap, "--concurrency", "1", "--disable-hot-restart", "-l", "warning"];
    this.#process = spawn(ENVOY, flags, { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.#output += chunk.toString();
      });
    }
  }

  /** Runs until it is disposed of. */
  static async start(adsAddress: string, options: AdsEnvoyOptions = {}): Promise<AdsEnvoy> {
    const relay = await Relay.start(adsAddress);
    return new AdsEnvoy(mkdtempSync(join(tmpdir(), "envoy-")), relay, options);
  }

  /** Path of a socket for a listener of this Envoy. */
  socket(name: string): string {
    return join(this.#folder, name);
  }

  get output(): string {
    return this.#output;
  }

  /** A number that Envoy counts; 0 before it does. */
  async stat(name: string): Promise<number> {
    const answer = await get(join(this.#folder, "admin"), `/stats?filter=^${name.replaceAll(".", "\\.")}$`).catch(
      () => undefined,
    );
    return Number(/: (\d+)/.exec(answer?.body ?? "")?.[1] ?? Number.NaN);
  }

  /** Waits until that holds. */
  async until(what: string, condition: () => Promise<boolean>): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    while (!(await condition())) {
      assert.equal(this.#process.exitCode, null, `Envoy ended: ${this.#output}`);
      assert.ok(performance.now() < end, `not in ${PATIENCE_MS} ms: ${what}\n${this.#output}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Waits until nothing is warming. */
  async warmed(): Promise<void> {
    await this.until("nothing is warming", async () => {
      const clusters = await this.stat("cluster_manager.warming_clusters");
      return clusters + (await this.stat("listener_manager.total_listeners_warming")) === 0;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill("SIGKILL");
    await exited;
    this.relay.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Passes bytes between Envoy and the server; can hold back what the server sends, and cut the connection. */
class Relay {
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  #target: string;
  #last: string | undefined;
  #held = false;

  private constructor(target: string) {
    this.#target = target;
    this.#server = net.createServer((down) => {
      const [host, port] = this.#target.split(":");
      this.#held = false;
      const up = net.connect(Number(port), host);
      const pair = [down, up];
      for (const socket of pair) {
        this.#sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          this.#sockets.delete(socket);
          for (const other of pair) other.destroy();
        });
      }
      down.on("data", (chunk) => up.write(chunk));
      const frames = new FrameSplitter((frame) => this.#pass(frame, down));
      up.on("data", (chunk: Buffer) => frames.push(chunk));
    });
  }

  static async start(target: string): Promise<Relay> {
    const relay = new Relay(target);
    await new Promise<void>((resolve) => relay.#server.listen(0, "127.0.0.1", resolve));
    return relay;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** New connections go to another server. */
  leadTo(target: string): void {
    this.#target = target;
  }

  /** The next frame with this text is the last that Envoy hears until it connects again. */
  holdAfter(text: string): void {
    this.#last = text;
  }

  #pass(frame: Buffer, down: net.Socket): void {
    if (this.#held) return;
    down.write(frame);
    if (this.#last === undefined || !frame.includes(this.#last)) return;
    this.#held = true;
    this.#last = undefined;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

/** Length, type, flags and stream. */
const FRAME_HEAD_BYTES = 9;

/** Cuts what a server of HTTP/2 sends into frames. */
class FrameSplitter {
  readonly #onFrame: (frame: Buffer) => void;
  #rest: Buffer = Buffer.alloc(0);

  constructor(onFrame: (frame: Buffer) => void) {
    this.#onFrame = onFrame;
  }

  push(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= FRAME_HEAD_BYTES) {
      const length = FRAME_HEAD_BYTES + this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < length) return;
      this.#onFrame(this.#rest.subarray(0, length));
      this.#rest = this.#rest.subarray(length);
    }
  }
}

/** A GET over a unix socket. */
export function get(socketPath: string, path: string): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const request = http.get({ socketPath, path, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        body += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    });
    request.on("error", reject);
  });
}

function bootstrapOf(adminPath: string, port: number, { apiType = "DELTA_GRPC", node = {} }: AdsEnvoyOptions): object {
  const ads = { ads: {}, resource_api_version: "V3" };
  return {
    node: { id: "sidecar~127.0.0.1~test.default~default.svc.cluster.local", cluster: "test", ...node },
    admin: { address: { pipe: { path: adminPath } } },
    dynamic_resources: {
      ads_config: {
        api_type: apiType,
        transport_api_version: "V3",
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: "xds" } }],
      },
      cds_config: { ...ads, initial_fetch_timeout: "0s" },
      lds_config: { ...ads, initial_fetch_timeout: "0s" },
    },
    static_resources: {
      clusters: [http2Cluster("xds", { socket_address: { address: "127.0.0.1", port_value: port } })],
    },
  };
}

/** A static cluster with one endpoint that speaks HTTP/2. */
export function http2Cluster(name: string, address: object): object {
  return {
    name,
    type: "STATIC",
    connect_timeout: "1s",
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
  };
}
