/**
 * Replicas, API server and etcd are killed in turn while requests go through a real gateway and its routes change all the
 * time. No request fails, and after each fault what is written reaches the gateway.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { type KubernetesApi, MERGE_PATCH } from "#lib/kubernetes/api-client.ts";
import {
  type AgentProcess,
  agentEnvironment,
  agentPorts,
  agentReady,
  spawnAgent,
  WHERE_ENVOY,
  writePodFiles,
} from "../../support/agent-process.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { freePorts } from "../../support/free-ports.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { ControlPlaneProcess } from "../../support/kubernetes/control-plane-process.ts";
import { type Front, openFront } from "../../support/kubernetes/front.ts";

const route = (round: number) => ({
  headers: { response: { set: { "x-round": String(round) } } },
  route: [{ destination: { host: "web.example.com", port: { number: 80 } } }],
});
const objects = (gatewayPort: number, webPort: number) => [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: "istio-system" } },
  { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "httpbin", namespace: "default" } },
  {
    apiVersion: "networking.istio.io/v1",
    kind: "ServiceEntry",
    metadata: { name: "web", namespace: "default" },
    spec: {
      hosts: ["web.example.com"],
      ports: [{ number: 80, name: "http", protocol: "HTTP", targetPort: webPort }],
      resolution: "STATIC",
      endpoints: [{ address: "127.0.0.1" }],
    },
  },
  {
    apiVersion: "networking.istio.io/v1",
    kind: "Gateway",
    metadata: { name: "web", namespace: "default" },
    spec: {
      selector: { app: "httpbin" },
      servers: [{ port: { number: gatewayPort, name: "http", protocol: "HTTP" }, hosts: ["web.example.com"] }],
    },
  },
  {
    apiVersion: "networking.istio.io/v1",
    kind: "VirtualService",
    metadata: { name: "web", namespace: "default" },
    spec: { hosts: ["web.example.com"], gateways: ["web"], http: [route(0)] },
  },
];
const VIRTUAL_SERVICE = "/apis/networking.istio.io/v1/namespaces/default/virtualservices/web";
const LATE_MS = 60_000;

/** Requests one after the other, and what became of them. */
class Traffic {
  readonly failures: string[] = [];
  requests = 0;
  round = -1;
  readonly #connections = new Agent({ keepAlive: true });
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const outcome = await this.#ask();
      this.requests++;
      if (typeof outcome === "string") this.failures.push(`request ${this.requests}: ${outcome}`);
      else this.round = outcome;
      await wait(10);
    }
    this.#connections.destroy();
  }

  #ask(): Promise<number | string> {
    return new Promise((resolve) => {
      const headers = { host: "web.example.com" };
      const sent = request({ port: this.#port, host: "127.0.0.1", headers, agent: this.#connections });
      sent.on("error", (error) => resolve(error.message));
      sent.on("response", (response: IncomingMessage) => {
        response.resume();
        const { statusCode } = response;
        response.on("end", () =>
          resolve(statusCode === 200 ? Number(response.headers["x-round"]) : `status ${statusCode}`),
        );
      });
      sent.end();
    });
  }
}

describe("everything is killed in turn", { skip: NO_KUBERNETES ?? WHERE_ENVOY.skip, timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-chaos-"));
  const names = ["istiod-a", "istiod-b"];
  const replicas = new Map<string, ControlPlaneProcess>();
  const stopping = new AbortController();
  let web: Server;
  let server: ApiServer;
  let api: KubernetesApi;
  let front: Front;
  let agent: AgentProcess;
  let traffic: Traffic;
  let round = 0;
  let running: Promise<unknown> = Promise.resolve();

  before(async () => {
    web = createServer((_request, response) => response.end("web"));
    // It must not end a connection at the moment at which the gateway uses it again.
    web.keepAliveTimeout = 0;
    await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
    const [gatewayPort = 0] = await freePorts(1);
    server = await startApiServer({ controllers: true });
    api = await server.api();
    await server.define(customResourceDefinitions());
    const all = objects(gatewayPort, (web.address() as AddressInfo).port);
    await server.apply(all.map((object) => JSON.stringify(object)).join("\n---\n"));
    front = await openFront([]);
    await Promise.all(names.map(startReplica));
    await startGateway();
    traffic = new Traffic(gatewayPort);
    await eventually("the gateway listens", async () => agent.text() !== "" && (await isOpen(gatewayPort)), LATE_MS);
    running = Promise.all([traffic.run(stopping.signal), change(stopping.signal)]);
    await goesOn();
    traffic.failures.length = 0;
  });
  after(async () => {
    stopping.abort();
    await running;
    await agent?.end();
    await Promise.all([...replicas.values()].map((replica) => replica.end()));
    front?.close();
    web?.close();
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  async function startReplica(podName: string): Promise<void> {
    const replica = new ControlPlaneProcess({ kubeConfig: server.kubeConfig, folder, podName });
    replicas.set(podName, replica);
    await replica.ready();
    const addresses = [...replicas.values()].map((each) => each.address("secure gRPC discovery service"));
    front.lead(await Promise.all(addresses));
  }

  async function startGateway(): Promise<void> {
    const root = ["get", "configmap", "istio-ca-root-cert", "-o", "jsonpath={.data['root-cert\\.pem']}"];
    await eventually("the root", async () => (await server.kubectl(root).catch(() => "")) !== "", LATE_MS);
    writePodFiles(folder, await server.kubectl(root));
    const token = await server.kubectl(["create", "token", "httpbin", "--audience=istio-ca"]);
    writeFileSync(join(folder, "var/run/secrets/tokens/istio-token"), token.trim());
    const ports = await agentPorts();
    const proxyConfig = JSON.stringify({ discoveryAddress: front.address });
    const env = agentEnvironment(ports, { proxyConfig, CA_ADDR: front.address, INSTANCE_IP: "10.244.0.7" });
    agent = spawnAgent(["proxy", "router", "--domain", "default.svc.cluster.local"], { cwd: folder, env });
    await agentReady(ports, agent.text);
  }

  /** Writes new routes as long as the API server takes them. */
  async function change(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const body = { spec: { http: [route(round + 1)] } };
      const asked = api.call({ method: "PATCH", path: VIRTUAL_SERVICE, body, contentType: MERGE_PATCH, signal });
      await asked.then(
        () => round++,
        () => undefined,
      );
      await wait(100);
    }
  }

  /** What is written from now on reaches the gateway, and no request failed. */
  async function goesOn(): Promise<void> {
    const now = round;
    await eventually("routes are written", () => round > now, LATE_MS);
    const written = round;
    await eventually("the gateway has them", () => traffic.round >= written, LATE_MS);
  }

  const leader = async () =>
    server.kubectl(["-n", "istio-system", "get", "lease", "istio-leader", "-o", "jsonpath={.spec.holderIdentity}"]);

  test("replicas, one after the other", async () => {
    for (const name of names) {
      await replicas.get(name)?.kill();
      await goesOn();
      await startReplica(name);
      await goesOn();
    }
    assert.deepEqual(traffic.failures, []);
  });

  test("the API server", async () => {
    await server.stop("kube-apiserver");
    await wait(1_500);
    await server.start();
    await goesOn();
    assert.deepEqual(traffic.failures, []);
  });

  test("etcd", async () => {
    await server.stop("etcd");
    await wait(1_500);
    await server.startEtcd();
    await goesOn();
    assert.deepEqual(traffic.failures, []);
  });

  test("an API server that stands still", async () => {
    server.pause("kube-apiserver", true);
    await wait(3_000);
    server.pause("kube-apiserver", false);
    await goesOn();
    assert.deepEqual(traffic.failures, []);
  });

  test("the leader and the API server together; the leader comes back first", async () => {
    let name = "";
    await eventually("one leads", async () => {
      name = await leader();
      return names.includes(name);
    });
    await Promise.all([server.stop("kube-apiserver"), replicas.get(name)?.kill()]);
    const started = startReplica(name);
    await wait(1_500);
    await server.start();
    await started;
    await goesOn();
    assert.deepEqual(traffic.failures, []);
  });

  test("all replicas: the gateway goes on with what it has, and with what is new when they are back", async () => {
    await Promise.all([...replicas.values()].map((replica) => replica.kill()));
    const before = traffic.requests;
    await eventually("requests are answered", () => traffic.requests > before + 50);
    await Promise.all(names.map(startReplica));
    await goesOn();
    assert.deepEqual(traffic.failures, []);
  });
});

async function isOpen(port: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
  return answer !== undefined;
}
