/** A real API server for tests: etcd and kube-apiserver on free ports of loopback, in a folder that goes with them. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createPrivateKey, generateKeyPairSync, sign } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import type { ClusterAccess } from "#lib/kubernetes/cluster-access.ts";
import { freePorts } from "../free-ports.ts";

const PROGRAMS = join(import.meta.dirname, "../../../.cache/kubernetes");
const run = promisify(execFile);

/** Why there is no API server to speak to; undefined when there is one. A test passes it as its `skip`. */
export const NO_KUBERNETES: string | undefined = existsSync(join(PROGRAMS, "stamp"))
  ? undefined
  : "no kube-apiserver: run `make kubernetes`";

export interface ApiServerOptions {
  /** Also run kube-controller-manager: EndpointSlices, service accounts, deletion of namespaces. */
  readonly controllers?: boolean;
  /** Write down who asked for what: `asked` tells it. */
  readonly audit?: boolean;
}

/** What somebody asked for. */
export interface AuditedRequest {
  readonly verb: string;
  /** With its subresource: `ingresses/status`. */
  readonly resource: string;
  /** Empty for the core group. */
  readonly group: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  /** He had no right to. */
  readonly isForbidden: boolean;
}

interface AuditEvent {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly resource: string;
    readonly subresource?: string;
    readonly apiGroup?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly annotations?: Readonly<Record<string, string>>;
}

interface DefinitionList {
  readonly items: readonly {
    readonly spec: {
      readonly group: string;
      readonly names: { readonly plural: string };
      readonly versions: readonly { readonly name: string }[];
    };
  }[];
}

/** Of service account tokens. */
const ISSUER = "https://kubernetes.default.svc.cluster.local";
/** A user that may do everything. */
const ADMIN_TOKEN = "admin-token";
/** How often the server is asked whether it is there. */
const POLL_MS = 50;
const AUDIT_POLICY = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata" }],
};
const START_MS = 60_000;

/** Starts an API server; it answers when this resolves. */
export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const folder = await mkdtemp(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "mizzen-kubernetes-"));
  const server = new ApiServer(folder, options);
  try {
    await server.prepare();
    await server.startEtcd();
    await server.start();
    if (options.controllers === true) await server.startControllers();
    return server;
  } catch (problem) {
    await server[Symbol.asyncDispose]();
    throw problem;
  }
}

export class ApiServer implements AsyncDisposable {
  readonly #folder: string;
  readonly #withControllers: boolean;
  readonly #audits: boolean;
  readonly #processes = new Map<string, ChildProcess>();
  readonly #apis = new Set<KubernetesApi>();
  #ports: readonly number[] = [];

  constructor(folder: string, { controllers = false, audit = false }: ApiServerOptions) {
    this.#folder = folder;
    this.#withControllers = controllers;
    this.#audits = audit;
  }

  get url(): string {
    return `https://127.0.0.1:${this.#ports[0]}`;
  }

  get kubeConfig(): string {
    return join(this.#folder, "kubeconfig");
  }

  /** A kubeconfig in a folder for the account that a token is of. */
  async kubeConfigFor(token: string, folder: string): Promise<string> {
    const config = JSON.parse(await readFile(this.kubeConfig, "utf8"));
    const file = join(folder, "kubeconfig");
    await writeFile(file, JSON.stringify({ ...config, users: [{ name: "admin", user: { token } }] }), { mode: 0o600 });
    return file;
  }

  /** A client that may do everything, or one with another token. */
  async api(token = ADMIN_TOKEN): Promise<KubernetesApi> {
    const api = new KubernetesApi(await this.access(token));
    this.#apis.add(api);
    return api;
  }

  async access(token = ADMIN_TOKEN): Promise<ClusterAccess> {
    const ca = await readFile(join(this.#folder, "certificates/apiserver.crt"), "utf8");
    return {
      server: this.url,
      ca,
      namespace: "default",
      credentials: async () => ({ authorization: `Bearer ${token}` }),
    };
  }

  /** A token that the server would have signed, had it been asked for these claims. */
  async tokenOf(claims: object): Promise<string> {
    const key = createPrivateKey(await readFile(join(this.#folder, "service-account.key")));
    const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
    const signed = `${encoded({ alg: "ES256" })}.${encoded({ iss: ISSUER, ...claims })}`;
    return `${signed}.${sign("sha256", Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
  }

  /** What a user asked for until now, of objects. */
  async asked(user: string): Promise<readonly AuditedRequest[]> {
    const lines = (await readFile(join(this.#folder, "audit.log"), "utf8")).split("\n").slice(0, -1);
    return lines.flatMap((line) => {
      const { verb, user: who, objectRef, annotations } = JSON.parse(line) as AuditEvent;
      if (who.username !== user || objectRef === undefined) return [];
      const { resource, subresource, apiGroup: group = "", namespace, name } = objectRef;
      const isForbidden = annotations?.["authorization.k8s.io/decision"] === "forbid";
      return { verb, resource: [resource, subresource].filter(Boolean).join("/"), group, namespace, name, isForbidden };
    });
  }

  /** Runs kubectl; gives what it prints. `input` is its standard input, for `-f -`. */
  async kubectl(args: readonly string[], input?: string): Promise<string> {
    const running = run(join(PROGRAMS, "kubectl"), args, {
      env: { KUBECONFIG: this.kubeConfig, HOME: this.#folder },
      maxBuffer: 1 << 28,
    });
    // One that wants no input may be gone before it gets any; how it ends tells the rest.
    running.child.stdin?.on("error", () => undefined);
    running.child.stdin?.end(input ?? "");
    return (await running).stdout;
  }

  /** Creates or changes objects as people do. */
  async apply(yaml: string): Promise<void> {
    await this.kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], yaml);
  }

  /** Adds kinds. A server that says they are established still refuses to watch them for a moment: this waits for both. */
  async define(definitions: readonly object[]): Promise<void> {
    await this.apply(definitions.map((definition) => JSON.stringify(definition)).join("\n---\n"));
    // Kubectl gives up on one that the server has not looked at yet.
    const established = ["wait", "--for=condition=Established", "--timeout=120s", "crd", "--all"];
    await this.#poll("definitions", () => this.kubectl(established));
    const api = await this.api();
    const { items } = await api.call<DefinitionList>({
      path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    });
    const watched = items.flatMap(({ spec: { group, names, versions } }) =>
      versions.map(async ({ name }) => {
        const path = `/apis/${group}/${name}/${names.plural}`;
        await this.#poll(`watches of ${path}`, () =>
          api.lines({ path, query: { watch: true, timeoutSeconds: 1 } }).next(),
        );
      }),
    );
    await Promise.all(watched);
  }

  /** Keys, certificates and files that all starts share. */
  async prepare(): Promise<void> {
    this.#ports = await freePorts(4);
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    await this.#write("service-account.key", privateKey.export({ type: "sec1", format: "pem" }).toString());
    await this.#write("service-account.pub", publicKey.export({ type: "spki", format: "pem" }).toString());
    await this.#write("tokens.csv", `${ADMIN_TOKEN},admin,admin,system:masters\n`);
    const cluster = { server: this.url, "certificate-authority": join(this.#folder, "certificates/apiserver.crt") };
    const config = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "test",
      contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
      clusters: [{ name: "test", cluster }],
      users: [{ name: "admin", user: { token: ADMIN_TOKEN } }],
    };
    await this.#write("kubeconfig", JSON.stringify(config));
    await this.#write("audit-policy", JSON.stringify(AUDIT_POLICY));
  }

  async startEtcd(): Promise<void> {
    const [, client, peer] = this.#ports;
    await this.#spawn("etcd", "/usr/bin/etcd", [
      `--data-dir=${join(this.#folder, "etcd")}`,
      `--listen-client-urls=http://127.0.0.1:${client}`,
      `--advertise-client-urls=http://127.0.0.1:${client}`,
      `--listen-peer-urls=http://127.0.0.1:${peer}`,
      `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
      `--initial-cluster=default=http://127.0.0.1:${peer}`,
      "--log-level=warn",
    ]);
  }

  /** Starts kube-apiserver, also after it was stopped: on the same port, with what etcd holds. */
  async start(): Promise<void> {
    const [port, etcd] = this.#ports;
    const inFolder = (name: string) => join(this.#folder, name);
    await this.#spawn("kube-apiserver", join(PROGRAMS, "kube-apiserver"), [
      `--etcd-servers=http://127.0.0.1:${etcd}`,
      "--bind-address=127.0.0.1",
      "--advertise-address=127.0.0.1",
      `--secure-port=${port}`,
      `--cert-dir=${inFolder("certificates")}`,
      `--token-auth-file=${inFolder("tokens.csv")}`,
      `--service-account-key-file=${inFolder("service-account.pub")}`,
      `--service-account-signing-key-file=${inFolder("service-account.key")}`,
      `--service-account-issuer=${ISSUER}`,
      `--api-audiences=${ISSUER},istio-ca`,
      "--service-cluster-ip-range=10.96.0.0/16",
      "--authorization-mode=RBAC",
      "--endpoint-reconciler-type=none",
      ...(this.#audits
        ? [`--audit-policy-file=${inFolder("audit-policy")}`, `--audit-log-path=${inFolder("audit.log")}`]
        : []),
      // Without its controller no namespace has the account that pods would get.
      ...(this.#withControllers ? [] : ["--disable-admission-plugins=ServiceAccount"]),
    ]);
    const api = await this.#untilThere();
    await this.#poll("the API server to be ready", () => api.lines({ path: "/readyz" }).next());
  }

  async startControllers(): Promise<void> {
    await this.#spawn("kube-controller-manager", join(PROGRAMS, "kube-controller-manager"), [
      `--kubeconfig=${this.kubeConfig}`,
      `--service-account-private-key-file=${join(this.#folder, "service-account.key")}`,
      `--root-ca-file=${join(this.#folder, "certificates/apiserver.crt")}`,
      "--use-service-account-credentials=false",
      "--leader-elect=false",
      `--secure-port=${this.#ports[3]}`,
      "--bind-address=127.0.0.1",
    ]);
    const api = await this.api();
    await this.#poll("service accounts", () =>
      api.call({ path: "/api/v1/namespaces/default/serviceaccounts/default" }),
    );
  }

  /** Ends a process: `etcd`, `kube-apiserver` or `kube-controller-manager`. */
  async stop(name: string, signal: "SIGTERM" | "SIGKILL" = "SIGKILL"): Promise<void> {
    const child = this.#processes.get(name);
    this.#processes.delete(name);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await gone;
  }

  /** Makes a process stand still, and go on: a peer that is there but says nothing. */
  pause(name: string, isPaused: boolean): void {
    this.#processes.get(name)?.kill(isPaused ? "SIGSTOP" : "SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const api of this.#apis) api.close();
    for (const name of [...this.#processes.keys()].reverse()) await this.stop(name);
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #spawn(name: string, program: string, args: readonly string[]): Promise<void> {
    const log = await open(join(this.#folder, `${name}.log`), "a");
    const child = spawn(program, args, { stdio: ["ignore", log.fd, log.fd] });
    await new Promise((resolve, reject) => child.once("spawn", resolve).once("error", reject));
    await log.close();
    this.#processes.set(name, child);
  }

  async #untilThere(): Promise<KubernetesApi> {
    const file = join(this.#folder, "certificates/apiserver.crt");
    await this.#poll("its certificate", () => readFile(file));
    return this.api();
  }

  async #poll(what: string, ask: () => Promise<unknown>): Promise<void> {
    const end = Date.now() + START_MS;
    for (;;) {
      try {
        await ask();
        return;
      } catch (problem) {
        const died = [...this.#processes].find(([, child]) => child.exitCode !== null)?.[0];
        if (died !== undefined || Date.now() > end) {
          const log = await readFile(join(this.#folder, `${died ?? "kube-apiserver"}.log`), "utf8");
          throw new Error(`waited in vain for ${what}\n${log.slice(-2000)}`, { cause: problem });
        }
        await wait(POLL_MS);
      }
    }
  }

  async #write(name: string, text: string): Promise<void> {
    await writeFile(join(this.#folder, name), text, { mode: 0o600 });
  }
}
