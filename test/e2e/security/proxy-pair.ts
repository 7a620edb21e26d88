/**
 * A control plane with a CA, two agents with their real Envoys, and an application behind the second: all of them processes
 * on loopback. Nothing is captured: the client's Envoy listens on a port of its own and calls the server's over mutual TLS,
 * with a new connection for each request, so that each request is a handshake.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { Agent, createServer, get, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignJWT } from "jose";
import { AGENT, type AgentPorts, agentEnvironment, agentPorts, agentReady } from "../../support/agent-process.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { freePorts } from "../../support/free-ports.ts";
import { object } from "../../support/objects.ts";

const DISCOVERY = join(import.meta.dirname, "../../../src/bin/pilot-discovery.ts");
/** Another agent can be tried in the place of ours, with all of our environment. */
const OTHER_AGENT = process.env.PILOT_AGENT;
const ISSUER = "https://issuer.example";

export interface ProxyPairOptions {
  /** Environment of the control plane. */
  readonly controlPlane: Readonly<Record<string, string>>;
  /** Environment of the agents. */
  readonly agents: Readonly<Record<string, string>>;
  /** Puts files into the CA's folder before anybody looks at them. */
  readonly prepareCa?: (folder: string) => void;
  /** What the server accepts: STRICT if not given. */
  readonly accepts?: "STRICT" | "PERMISSIVE";
}

export class ProxyPair implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "proxy-pair-"));
  readonly #children: ChildProcess[] = [];
  readonly #output: string[] = [];
  readonly #admin: number[] = [];
  #application: Server | undefined;
  #clientPort = 0;
  #serverPort = 0;

  private constructor() {}

  static async start(options: ProxyPairOptions): Promise<ProxyPair> {
    const pair = new ProxyPair();
    try {
      await pair.#start(options);
      return pair;
    } catch (error) {
      await pair[Symbol.asyncDispose]();
      throw new Error(`cannot start; the processes printed\n${pair.output}`, { cause: error });
    }
  }

  get #accessLog(): string {
    return join(this.#folder, "access.log");
  }

  /** What both Envoys wrote about requests so far. */
  accessLog(): string {
    return existsSync(this.#accessLog) ? readFileSync(this.#accessLog, "utf8") : "";
  }

  get caFolder(): string {
    return join(this.#folder, "ca");
  }

  /** What all the processes printed. */
  get output(): string {
    return this.#output.join("");
  }

  /** Writes a file of the configuration; undefined removes it. */
  write(name: string, text: string | undefined): void {
    const file = join(this.#folder, "config", name);
    if (text === undefined) rmSync(file, { force: true });
    else writeFileSync(file, text);
  }

  /** One request through both proxies; resolves to its status, 0 when there was no answer. */
  call(path = "/"): Promise<number> {
    return this.#request(this.#clientPort, path);
  }

  /** One request to the server's proxy in plain text. */
  callPlain(path = "/"): Promise<number> {
    return this.#request(this.#serverPort, path);
  }

  #request(port: number, path: string): Promise<number> {
    return new Promise((resolve) => {
      const agent = new Agent({ keepAlive: false });
      const request = get({ host: "127.0.0.1", port, path, agent, headers: { host: "server.example" } });
      request.setTimeout(20_000, () => request.destroy());
      request.on("error", () => resolve(0));
      request.on("response", (response) => {
        response.resume();
        response.on("end", () => resolve(response.statusCode ?? 0));
      });
    });
  }

  /** Serial numbers of what each Envoy shows and trusts. */
  async certificates(): Promise<readonly { readonly leaf: string; readonly roots: readonly string[] }[]> {
    return Promise.all(
      this.#admin.map(async (port) => {
        const response = await fetch(`http://127.0.0.1:${port}/certs`);
        const { certificates } = (await response.json()) as { readonly certificates: readonly EnvoyCertificates[] };
        const roots = certificates.flatMap(({ ca_cert = [] }) => ca_cert.map(({ serial_number }) => serial_number));
        const leaf = certificates.flatMap(({ cert_chain = [] }) =>
          cert_chain.map(({ serial_number }) => serial_number),
        );
        return { leaf: leaf[0] ?? "", roots: [...new Set(roots)] };
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#application?.close();
    this.#application?.closeAllConnections();
    // Agents before the control plane: they end without waiting for it.
    for (const child of this.#children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGTERM");
      child.kill("SIGINT");
      const late = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await once(child, "exit");
      clearTimeout(late);
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #start(options: ProxyPairOptions): Promise<void> {
    const { controlPlane, agents, prepareCa, accepts = "STRICT" } = options;
    const [clientPort = 0, serverPort = 0, discovery = 0] = await freePorts(3);
    this.#clientPort = clientPort;
    this.#serverPort = serverPort;
    this.#application = createServer((_, response) => response.end("ok")).listen(0, "127.0.0.1");
    await once(this.#application, "listening");
    const address = this.#application.address();
    const applicationPort = typeof address === "object" && address !== null ? address.port : 0;
    mkdirSync(join(this.#folder, "config"));
    const objects = meshObjects({ clientPort, serverPort, applicationPort, accepts });
    writeFileSync(join(this.#folder, "config/mesh.yaml"), objects);
    writeFileSync(join(this.#folder, "mesh-config.yaml"), JSON.stringify({ accessLogFile: this.#accessLog }));
    mkdirSync(this.caFolder);
    prepareCa?.(this.caFolder);
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), alg: "ES256" }] });
    const flags = ["--grpcAddr=", "--httpsAddr=", "--httpAddr=127.0.0.1:0", "--monitoringAddr=127.0.0.1:0"];
    this.#spawn(
      "istiod",
      [
        process.execPath,
        DISCOVERY,
        "discovery",
        ...flags,
        `--secureGRPCAddr=127.0.0.1:${discovery}`,
        "--configDir",
        join(this.#folder, "config"),
        "--meshConfig",
        join(this.#folder, "mesh-config.yaml"),
      ],
      {
        ROOT_CA_DIR: this.caFolder,
        JWT_RULE: JSON.stringify({ issuer: ISSUER, jwks, audiences: ["istio-ca"] }),
        ISTIOD_CUSTOM_HOST: "localhost",
        ...controlPlane,
      },
    );
    await eventually("the control plane serves", async () => this.output.includes("control plane is ready"));
    const tokenOf = (account: string) =>
      new SignJWT({ sub: `system:serviceaccount:default:${account}` })
        .setProtectedHeader({ alg: "ES256" })
        .setIssuer(ISSUER)
        .setAudience("istio-ca")
        .setExpirationTime("1h")
        .sign(privateKey);
    for (const account of ["server", "client"]) {
      const ports = await this.#startAgent(account, await tokenOf(account), { discovery, env: agents });
      this.#admin.push(ports.admin);
    }
    await eventually("a first answer", async () => (await this.call()) === 200);
  }

  async #startAgent(
    account: string,
    token: string,
    { discovery, env }: { readonly discovery: number; readonly env: Readonly<Record<string, string>> },
  ): Promise<AgentPorts> {
    const folder = join(this.#folder, account);
    for (const sub of ["var/run/secrets/tokens", "var/run/secrets/istio", "etc/istio/pod", "etc/istio/proxy"])
      mkdirSync(join(folder, sub), { recursive: true });
    chmodSync(this.#folder, 0o755);
    writeFileSync(join(folder, "var/run/secrets/tokens/istio-token"), token);
    // In Kubernetes a ConfigMap that follows the CA.
    symlinkSync(join(this.caFolder, "root-cert.pem"), join(folder, "var/run/secrets/istio/root-cert.pem"));
    writeFileSync(join(folder, "etc/istio/pod/labels"), `app="${account}"\n`);
    const ports = await agentPorts();
    const command = OTHER_AGENT === undefined ? [process.execPath, AGENT] : [OTHER_AGENT];
    this.#spawn(
      account,
      [...command, "proxy", "sidecar", "--domain", "default.svc.cluster.local"],
      {
        ...agentEnvironment(ports, { proxyConfig: JSON.stringify({ discoveryAddress: `localhost:${discovery}` }) }),
        POD_NAME: `${account}-1`,
        SERVICE_ACCOUNT: account,
        // None that a listener has: a proxy gets no listeners for its own address.
        INSTANCE_IP: "127.0.0.9",
        ISTIO_META_INTERCEPTION_MODE: "NONE",
        ...env,
      },
      folder,
    );
    await agentReady(ports, () => this.output);
    return ports;
  }

  #spawn(
    name: string,
    [file = "", ...args]: readonly string[],
    env: Readonly<Record<string, string>>,
    cwd = this.#folder,
  ): void {
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const inherited = file === OTHER_AGENT ? process.env : { PATH, NODE_COMPILE_CACHE };
    const child = spawn(file, args, { cwd, stdio: ["ignore", "pipe", "pipe"], env: { ...inherited, ...env } });
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => this.#output.push(`${name}: ${chunk}`));
    this.#children.push(child);
  }
}

interface EnvoyCertificates {
  readonly ca_cert?: readonly { readonly serial_number: string }[];
  readonly cert_chain?: readonly { readonly serial_number: string }[];
}

interface Ports {
  readonly clientPort: number;
  readonly serverPort: number;
  readonly applicationPort: number;
  readonly accepts: "STRICT" | "PERMISSIVE";
}

function meshObjects({ clientPort, serverPort, applicationPort, accepts }: Ports): string {
  const host = "server.example";
  return (
    object("ServiceEntry", "server", {
      hosts: [host],
      location: "MESH_INTERNAL",
      resolution: "STATIC",
      ports: [{ number: clientPort, name: "http", protocol: "HTTP", targetPort: serverPort }],
      endpoints: [{ address: "127.0.0.1", labels: { "security.istio.io/tlsMode": "istio" }, serviceAccount: "server" }],
    }) +
    object("DestinationRule", "server", {
      host,
      trafficPolicy: { connectionPool: { http: { maxRequestsPerConnection: 1 } }, tls: { mode: "ISTIO_MUTUAL" } },
    }) +
    object("PeerAuthentication", "accepts", { mtls: { mode: accepts } }) +
    object("Sidecar", "client", {
      workloadSelector: { labels: { app: "client" } },
      egress: [
        {
          port: { number: clientPort, name: "http", protocol: "HTTP" },
          bind: "127.0.0.1",
          captureMode: "NONE",
          hosts: [`./${host}`],
        },
      ],
    }) +
    object("Sidecar", "server", {
      workloadSelector: { labels: { app: "server" } },
      ingress: [
        {
          port: { number: serverPort, name: "http", protocol: "HTTP" },
          bind: "127.0.0.1",
          captureMode: "NONE",
          defaultEndpoint: `127.0.0.1:${applicationPort}`,
        },
      ],
      egress: [{ hosts: ["./*"] }],
    })
  );
}
