/** A control plane on a real API server, and an agent with a real Envoy that joins by the token of its pod. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  type AgentPorts,
  type AgentProcess,
  agentEnvironment,
  agentPorts,
  agentReady,
  spawnAgent,
  WHERE_ENVOY,
  writePodFiles,
} from "../../support/agent-process.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { ControlPlaneProcess } from "../../support/kubernetes/control-plane-process.ts";

const WHERE = { skip: NO_KUBERNETES ?? WHERE_ENVOY.skip, timeout: 600_000 };

const SHOP = `
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {topology.kubernetes.io/region: r1, topology.kubernetes.io/zone: z1}}
---
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: httpbin}
---
apiVersion: v1
kind: Service
metadata: {name: httpbin}
spec:
  selector: {app: httpbin}
  ports: [{name: http, port: 8000, targetPort: web}]
---
apiVersion: v1
kind: Pod
metadata: {name: httpbin-1, labels: {app: httpbin}}
spec:
  serviceAccountName: httpbin
  nodeName: node-1
  containers: [{name: web, image: httpbin, ports: [{name: web, containerPort: 8080}]}]
`;

describe("a mesh in Kubernetes", WHERE, () => {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-joining-"));
  let server: ApiServer;
  let discovery: ControlPlaneProcess;
  let agent: AgentProcess;
  let ports: AgentPorts;

  before(async () => {
    server = await startApiServer({ controllers: true });
    await server.apply(SHOP);
    await setPodAddress(server, "httpbin-1", "10.244.0.7");
    discovery = new ControlPlaneProcess({ kubeConfig: server.kubeConfig, folder });
    const xds = await discovery.address("secure gRPC discovery service");
    const args = [
      "-n",
      "default",
      "get",
      "configmap",
      "istio-ca-root-cert",
      "-o",
      "jsonpath={.data['root-cert\\.pem']}",
    ];
    await eventually("the root is in the namespace", async () => (await server.kubectl(args).catch(() => "")) !== "");
    writePodFiles(folder, await server.kubectl(args));
    const token = ["create", "token", "httpbin", "--audience=istio-ca", "--bound-object-kind=Pod"];
    const bound = await server.kubectl([...token, "--bound-object-name=httpbin-1"]);
    writeFileSync(join(folder, "var/run/secrets/tokens/istio-token"), bound.trim());
    ports = await agentPorts();
    const proxyConfig = JSON.stringify({ discoveryAddress: xds });
    const env = agentEnvironment(ports, { proxyConfig, CA_ADDR: xds, INSTANCE_IP: "10.244.0.7" });
    agent = spawnAgent(["proxy", "sidecar", "--domain", "default.svc.cluster.local"], { cwd: folder, env });
    await agentReady(ports, agent.text);
  });

  after(async () => {
    await agent?.end();
    await discovery?.end();
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const admin = async (path: string) => (await fetch(`http://127.0.0.1:${ports.admin}${path}`)).text();
  const endpoints = async () =>
    (await admin("/clusters")).match(/outbound\|8000\|\|httpbin\S*?::([\d.]+:\d+)::health/g)?.join() ?? "";

  test("the agent's certificate names the account of its pod", async () => {
    const name = "spiffe://cluster.local/ns/default/sa/httpbin";
    await eventually("the certificate", async () => (await admin("/certs")).includes(name));
  });

  test("pods behind a service are its endpoints, by the name of their port, as long as they are ready", async () => {
    await eventually("the endpoint", async () => (await endpoints()).includes("10.244.0.7:8080"));
    await setPodReady(server, "httpbin-1", false);
    await eventually("no endpoint", async () => (await endpoints()) === "");
    await setPodReady(server, "httpbin-1", true);
    await eventually("the endpoint again", async () => (await endpoints()).includes("10.244.0.7:8080"));
  });

  test("the proxy has a listener for its own port", async () => {
    const listeners = "/config_dump?resource=dynamic_listeners";
    await eventually("the listener", async () => (await admin(listeners)).includes("inbound|8080||"));
  });

  test("an API server that is away costs the proxies nothing", async () => {
    await server.stop("kube-apiserver");
    await eventually("told", async () => discovery.text().includes("cannot be read: what was known holds"));
    assert.ok((await endpoints()).includes("10.244.0.7:8080"));
    await server.start();
    await server.apply(
      "apiVersion: v1\nkind: Service\nmetadata: {name: later}\nspec: {ports: [{name: http, port: 7000}]}\n",
    );
    await eventually("what came later", async () => (await admin("/clusters")).includes("outbound|7000||later"));
  });
});

/** What a kubelet would write. */
async function setPodAddress(server: ApiServer, name: string, podIP: string): Promise<void> {
  await patchStatus(server, name, { phase: "Running", podIP, podIPs: [{ ip: podIP }], ...ready(true) });
}

async function setPodReady(server: ApiServer, name: string, isReady: boolean): Promise<void> {
  await patchStatus(server, name, ready(isReady));
}

function ready(isReady: boolean): object {
  return { conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] };
}

async function patchStatus(server: ApiServer, name: string, status: object): Promise<void> {
  const patch = JSON.stringify({ status });
  await server.kubectl(["patch", "pod", name, "--subresource=status", "--type=strategic", "-p", patch]);
}
