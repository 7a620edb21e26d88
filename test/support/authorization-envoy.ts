/**
 * One real Envoy with two listeners for each set of policies: its filters for HTTP in front of an answer of 200, and those
 * for TCP in front of an echo. Callers prove who they are by certificates, and where they are by addresses of the loopback network.
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { Agent, request } from "node:https";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { create, toBinary } from "@bufbuild/protobuf";
import { BootstrapSchema } from "#gen/envoy/config/bootstrap/v3/bootstrap_pb.ts";
import { Cluster_DiscoveryType, type ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import type { FilterChainSchema } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import { EchoSchema } from "#gen/envoy/extensions/filters/network/echo/v3/echo_pb.ts";
import { DownstreamTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { tcpAuthorization, unreadableTcpFilters } from "#translate/authorization/filters.ts";
import { httpConnectionManager } from "#translate/filters/http-connection-manager.ts";
import { TLS_INSPECTOR } from "#translate/listeners/inspectors.ts";
import { authorizationInput, authorizationPoliciesOf } from "#translate/policies/authorization-policies.ts";
import { jwtInput, requestAuthenticationsOf } from "#translate/policies/request-authentications.ts";
import { traitsOf } from "#translate/traits/traits.ts";
import { type Init, pack } from "#translate/wire/encode.ts";
import { ENVOY, get } from "./ads-envoy.ts";
import { freePorts } from "./free-ports.ts";
import { proxyOf } from "./mesh.ts";

/** Whose policies are in force. */
export const WORKLOAD = { namespace: "default", labels: { app: "web" } };

/** Who asks, and for what. */
export interface Ask {
  /** One of the identities that the rig was started with; undefined shows no certificate. */
  readonly identity?: string | undefined;
  /** An address of 127.0.0.0/8. */
  readonly sourceIp?: string;
  /** The server name that is asked for by TLS; none when left out. */
  readonly sni?: string | undefined;
  readonly method?: string;
  readonly path?: string;
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** Ports of Envoys that have ended. They stay this process's own, and there are not enough for ever new ones. */
const IDLE_PORTS: number[] = [];

async function takePorts(count: number): Promise<readonly number[]> {
  const idle = IDLE_PORTS.splice(0, count);
  return [...idle, ...(await freePorts(count - idle.length))];
}

export class AuthorizationEnvoy implements AsyncDisposable {
  readonly #folder: string;
  readonly #process: ChildProcess;
  readonly #agents = new Map<string, Agent>();
  /** Of the listeners for HTTP, and of those for TCP. */
  readonly ports: readonly number[];
  readonly tcpPorts: readonly number[];
  #output = "";

  private constructor(folder: string, ports: readonly number[], tcpPorts: readonly number[]) {
    this.#folder = folder;
    this.ports = ports;
    this.tcpPorts = tcpPorts;
    const args = ["-c", join(folder, "bootstrap.pb"), "--concurrency", "1", "--disable-hot-restart", "-l", "warning"];
    this.#process = spawn(ENVOY, args, { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.on("data", (chunk: Buffer) => {
        this.#output += chunk.toString();
      });
  }

  /** `meshOfPort` makes the mesh of each listener; policies may name the port. */
  static async start(
    identities: readonly string[],
    meshesOfPorts: readonly ((port: number) => Snapshot)[],
    /** Ports of 127.0.0.1 by the names of clusters that lead there. */
    clusters: Readonly<Record<string, number>> = {},
  ): Promise<AuthorizationEnvoy> {
    const folder = mkdtempSync(join(tmpdir(), "authorization-"));
    makeCertificates(folder, identities);
    const free = await takePorts(2 * meshesOfPorts.length);
    const [ports, tcpPorts] = [free.slice(0, meshesOfPorts.length), free.slice(meshesOfPorts.length)];
    const listeners = [
      ...ports.map((port, i) => [port, httpChain, meshesOfPorts[i]] as const),
      ...tcpPorts.map((port, i) => [port, tcpChain, meshesOfPorts[i]] as const),
    ].flatMap(([port, chain, meshOf]) => (meshOf === undefined ? [] : listenerOf(port, chain(meshOf(port)), folder)));
    const bootstrap = create(BootstrapSchema, {
      node: { id: "test", cluster: "test" },
      admin: { address: { address: { case: "pipe", value: { path: join(folder, "admin") } } } },
      staticResources: { listeners, clusters: Object.entries(clusters).map(clusterOf) },
    });
    writeFileSync(join(folder, "bootstrap.pb"), toBinary(BootstrapSchema, bootstrap));
    const envoy = new AuthorizationEnvoy(folder, ports, tcpPorts);
    try {
      await envoy.#ready();
    } catch (error) {
      await envoy[Symbol.asyncDispose]();
      throw error;
    }
    return envoy;
  }

  /** The status that a request to a listener gets. */
  async ask(listener: number, asked: Ask): Promise<number> {
    return (await this.answer(listener, asked)).status;
  }

  /** What a request to a listener gets. */
  answer(listener: number, { identity, sourceIp = "127.0.0.1", path = "/", ...rest }: Ask): Promise<Answer> {
    const port = this.ports[listener] ?? assert.fail(`no listener ${listener}`);
    const { method = "GET", host = "example.com", headers = {}, sni = "" } = rest;
    const sent = Object.entries({ host, ...headers }).map(([name, value]) => [name, value] as const);
    return new Promise((resolve, reject) => {
      const asked = request({
        host: "127.0.0.1",
        port,
        method,
        path,
        localAddress: sourceIp,
        agent: this.#agent(identity, sourceIp),
        headers: Object.fromEntries(sent) as Record<string, string | string[]>,
        rejectUnauthorized: false,
        servername: sni,
        setHost: false,
      });
      asked.on("error", (cause) => reject(new Error(`${method} ${path}: ${cause.message}\n${this.#output}`)));
      asked.on("response", (response) => {
        response.resume();
        response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers }));
      });
      asked.end();
    });
  }

  /** Whether a connection to a listener for TCP gets its bytes back. */
  echo(listener: number, { identity, sourceIp = "127.0.0.1", sni = "" }: Ask): Promise<boolean> {
    const port = this.tcpPorts[listener] ?? assert.fail(`no listener ${listener}`);
    return new Promise((resolve) => {
      const socket = connect({
        socket: createConnection({ host: "127.0.0.1", port, localAddress: sourceIp }),
        servername: sni,
        rejectUnauthorized: false,
        ...this.#credentials(identity),
      });
      socket.on("secureConnect", () => socket.write("hello"));
      socket.on("data", () => {
        resolve(true);
        socket.destroy();
      });
      socket.on("error", () => undefined); // a refusal may reset the connection
      socket.on("close", () => resolve(false));
    });
  }

  #credentials(identity: string | undefined): { readonly cert?: Buffer; readonly key?: Buffer } {
    const file = (ending: string) => readFileSync(join(this.#folder, `${fileName(identity ?? "")}.${ending}`));
    return identity === undefined ? {} : { cert: file("crt"), key: file("key") };
  }

  #agent(identity: string | undefined, sourceIp: string): Agent {
    const key = `${identity} ${sourceIp}`;
    const known = this.#agents.get(key);
    if (known !== undefined) return known;
    const agent = new Agent({ keepAlive: true, maxSockets: 2, ...this.#credentials(identity) });
    this.#agents.set(key, agent);
    return agent;
  }

  async #ready(): Promise<void> {
    const end = performance.now() + 20_000;
    for (;;) {
      assert.equal(this.#process.exitCode, null, `Envoy ended:\n${this.#output}`);
      assert.ok(performance.now() < end, `Envoy is not ready:\n${this.#output}`);
      try {
        const { status } = await get(join(this.#folder, "admin"), "/ready");
        if (status === 200) return;
      } catch {
        // Not listening yet.
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.#agents.values()) agent.destroy();
    if (this.#process.exitCode === null) {
      const exited = new Promise((resolve) => this.#process.once("exit", resolve));
      this.#process.kill("SIGKILL");
      await exited;
    }
    rmSync(this.#folder, { recursive: true, force: true });
    IDLE_PORTS.push(...this.ports, ...this.tcpPorts);
  }
}

type Filters = NonNullable<Init<typeof FilterChainSchema>["filters"]>;

function httpChain(snapshot: Snapshot): Filters {
  const { mesh } = snapshot;
  const manager = httpConnectionManager({
    class: "inbound",
    statPrefix: "test",
    protocol: "HTTP",
    traits: traitsOf(mesh, proxyOf(WORKLOAD)).http,
    mesh,
    authorization: authorizationInput(snapshot, authorizationPoliciesOf(snapshot, WORKLOAD)),
    authentication: jwtInput(snapshot, requestAuthenticationsOf(snapshot, WORKLOAD)),
    routes: {
      virtualHosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [
            {
              match: { pathSpecifier: { case: "prefix", value: "/" } },
              action: { case: "directResponse", value: { status: 200 } },
            },
          ],
        },
      ],
    },
  });
  return [manager];
}

function tcpChain(snapshot: Snapshot): Filters {
  const authorization = authorizationInput(snapshot, authorizationPoliciesOf(snapshot, WORKLOAD));
  const typedConfig = { case: "typedConfig" as const, value: pack(EchoSchema, {}) };
  return [
    ...unreadableTcpFilters(authorization),
    ...tcpAuthorization(authorization),
    { name: "envoy.filters.network.echo", configType: typedConfig },
  ];
}

function listenerOf(port: number, filters: Filters, folder: string) {
  const read = (file: string) => ({
    specifier: { case: "inlineBytes" as const, value: readFileSync(join(folder, file)) },
  });
  const tls = pack(DownstreamTlsContextSchema, {
    commonTlsContext: {
      tlsCertificates: [{ certificateChain: read("server.crt"), privateKey: read("server.key") }],
      validationContextType: { case: "validationContext", value: { trustedCa: read("ca.crt") } },
    },
  });
  return {
    name: String(port),
    address: {
      address: {
        case: "socketAddress" as const,
        value: { address: "127.0.0.1", portSpecifier: { case: "portValue" as const, value: port } },
      },
    },
    // Server names are known by it alone.
    listenerFilters: [TLS_INSPECTOR],
    filterChains: [
      {
        filters,
        transportSocket: {
          name: "envoy.transport_sockets.tls",
          configType: { case: "typedConfig" as const, value: tls },
        },
      },
    ],
  };
}

function clusterOf([name, port]: readonly [string, number]): Init<typeof ClusterSchema> {
  const value = { address: "127.0.0.1", portSpecifier: { case: "portValue" as const, value: port } };
  const address = { address: { case: "socketAddress" as const, value } };
  return {
    name,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    connectTimeout: { seconds: 5n },
    loadAssignment: {
      clusterName: name,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: "endpoint", value: { address } } }] }],
    },
  };
}

function fileName(identity: string): string {
  return identity.replace(/[^a-z0-9.]/gi, "_");
}

function makeCertificates(folder: string, identities: readonly string[]): void {
  const openssl = (args: readonly string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"];
  openssl(["req", "-x509", ...key, "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt"]);
  for (const [name, subjectAltName] of [
    ["server", "DNS:example.com"],
    ...identities.map((identity) => [fileName(identity), `URI:${identity}`]),
  ]) {
    openssl([
      ...["req", "-x509", ...key, "-CA", "ca.crt", "-CAkey", "ca.key", "-subj", "/", "-addext"],
      ...[`subjectAltName=${subjectAltName}`, "-addext", "basicConstraints=CA:FALSE"],
      ...["-keyout", `${name}.key`, "-out", `${name}.crt`],
    ]);
  }
}
