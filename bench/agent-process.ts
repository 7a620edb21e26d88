/** An agent without Envoy, ours or another, as a process of its own; the bench plays control plane and Envoy. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  Client,
  type ClientDuplexStream,
  credentials,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
} from "@grpc/grpc-js";
import { MessageWriter } from "#lib/wire/write.ts";
import { LISTENER_TYPE, NAME_TABLE_TYPE } from "#protocol/messages/type-urls.ts";

type ServerStream = ServerDuplexStream<Buffer, Buffer>;
type ClientStream = ClientDuplexStream<Buffer, Buffer>;

const ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const PATIENCE_MS = 30_000;
/** Clock ticks per second of /proc, on every Linux that Node runs on. */
const TICKS = 100;
const RAW = {
  requestSerialize: (bytes: Buffer) => bytes,
  requestDeserialize: (bytes: Buffer) => bytes,
  responseSerialize: (bytes: Buffer) => bytes,
  responseDeserialize: (bytes: Buffer) => bytes,
};

export interface AgentOptions {
  /** Program and first arguments, such as `["bin/pilot-agent"]`. */
  readonly command: readonly string[];
  /** Encoded name table that the control plane sends. */
  readonly nameTable: Uint8Array;
}

export class BenchAgent implements AsyncDisposable {
  readonly dnsPort: number;
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #server: Server;
  readonly #client: Client;
  #upstream: ServerStream | undefined;
  #downstream: ClientStream | undefined;
  #output = "";

  private constructor(input: { process: ChildProcess; folder: string; server: Server; dnsPort: number }) {
    this.#process = input.process;
    this.#folder = input.folder;
    this.#server = input.server;
    this.dnsPort = input.dnsPort;
    for (const stream of [input.process.stdout, input.process.stderr])
      stream?.on("data", (chunk) => {
        this.#output += chunk;
      });
    this.#client = new Client(`unix:${join(input.folder, "etc/istio/proxy/XDS")}`, credentials.createInsecure(), {
      "grpc.max_receive_message_length": -1,
      "grpc-node.flow_control_window": 1024 * 1024,
    });
  }

  /** Starts an agent and waits until it has its name table. */
  static async start({ command, nameTable }: AgentOptions): Promise<BenchAgent> {
    const folder = mkdtempSync(join(tmpdir(), "bench-agent-"));
    for (const sub of ["etc/istio/proxy", "var/run/secrets/tokens", "var/run/secrets/istio"])
      mkdirSync(join(folder, sub), { recursive: true });
    writeFileSync(join(folder, "var/run/secrets/tokens/istio-token"), "token");
    const server = new Server({ "grpc.max_send_message_length": -1, "grpc-node.flow_control_window": 1024 * 1024 });
    let agent: BenchAgent | undefined;
    server.addService(
      { Delta: { path: ADS, requestStream: true, responseStream: true, ...RAW } },
      { Delta: (stream: ServerStream) => agent?.accept(stream, nameTable) },
    );
    const port = await new Promise<number>((resolve, reject) => {
      const insecure = ServerCredentials.createInsecure();
      server.bindAsync("127.0.0.1:0", insecure, (error, bound) => (error ? reject(error) : resolve(bound)));
    });
    const [dnsPort, statusPort, debugPort] = await Promise.all([freePort(), freePort(), freePort()]);
    const proxyConfig = { discoveryAddress: `127.0.0.1:${port}`, controlPlaneAuthPolicy: "NONE", statusPort };
    const [program = "", ...first] = command;
    const child = spawn(program, [...first, "proxy", "sidecar"], {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env.PATH,
        POD_NAME: "bench",
        POD_NAMESPACE: "default",
        INSTANCE_IP: "127.0.0.1",
        DISABLE_ENVOY: "true",
        CLOUD_PLATFORM: "none",
        ISTIO_META_DNS_CAPTURE: "true",
        DNS_PROXY_ADDR: `127.0.0.1:${dnsPort}`,
        PROXY_XDS_DEBUG_VIA_AGENT_PORT: String(debugPort),
        PROXY_CONFIG: JSON.stringify(proxyConfig),
        CA_ADDR: `127.0.0.1:${port}`,
        CA_ROOT_CA: "SYSTEM",
        GRPC_XDS_BOOTSTRAP: join(folder, "grpc.json"),
      },
    });
    agent = new BenchAgent({ process: child, folder, server, dnsPort });
    await agent.#connect();
    return agent;
  }

  /** Plays the control plane on a stream of the agent. */
  accept(stream: ServerStream, nameTable: Uint8Array): void {
    this.#upstream = stream;
    stream.on("error", () => undefined);
    let sent = false;
    stream.on("data", (request: Buffer) => {
      if (sent || !request.includes(NAME_TABLE_TYPE)) return;
      sent = true;
      stream.write(deltaResponse(NAME_TABLE_TYPE, nameTable));
    });
  }

  /** Sends listeners of a size from the control plane; resolves with what came out of the agent. */
  async push(value: Uint8Array): Promise<number> {
    const { upstream, downstream } = this.#streams();
    const received = new Promise<Buffer>((resolve) => downstream.once("data", resolve));
    upstream.write(deltaResponse(LISTENER_TYPE, value));
    return (await received).length;
  }

  /** CPU time used so far, in milliseconds. */
  cpuMs(): number {
    const stat = readFileSync(`/proc/${this.#process.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
  }

  /** Private memory, in megabytes. */
  privateMegabytes(): number {
    const status = readFileSync(`/proc/${this.#process.pid}/status`, "utf8");
    return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.close();
    this.#server.forceShutdown();
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    if (this.#process.exitCode === null && this.#process.kill("SIGKILL")) await ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Opens Envoy's stream as soon as the agent serves it. */
  async #connect(): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    while (this.#upstream === undefined) {
      if (performance.now() > end || this.#process.exitCode !== null)
        throw new Error(`the agent does not serve:\n${this.#output}`);
      const stream = this.#client.makeBidiStreamRequest(ADS, RAW.requestSerialize, RAW.responseDeserialize);
      stream.on("error", () => undefined);
      stream.write(Buffer.from(new MessageWriter().string(2, LISTENER_TYPE).finish()));
      this.#downstream = stream;
      await new Promise((resolve) => setTimeout(resolve, 300));
      if (this.#upstream === undefined) stream.cancel();
    }
  }

  #streams() {
    const [upstream, downstream] = [this.#upstream, this.#downstream];
    if (upstream === undefined || downstream === undefined) throw new Error("the agent has no stream");
    return { upstream, downstream };
  }
}

function deltaResponse(typeUrl: string, value: Uint8Array): Buffer {
  const any = new MessageWriter().string(1, typeUrl).bytes(2, value).finish();
  const resource = new MessageWriter().string(3, "x").bytes(2, any).finish();
  return Buffer.from(new MessageWriter().bytes(2, resource).string(4, typeUrl).string(5, "1").finish());
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}
