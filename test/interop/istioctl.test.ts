/** Istio's own istioctl against our control plane and our API. Runs where `ISTIOCTL` names one. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { at } from "#install/fixture.ts";
import {
  type AgentPorts,
  type AgentProcess,
  agentEnvironment,
  agentPorts,
  agentReady,
  spawnAgent,
  WHERE_ENVOY,
  writePodFiles,
} from "../support/agent-process.ts";
import { eventually } from "../support/fake-control-plane.ts";
import { runInstallCommand } from "../support/install-command.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../support/kubernetes/api-server.ts";
import { ControlPlaneProcess } from "../support/kubernetes/control-plane-process.ts";

const { ISTIOCTL = "" } = process.env;
const SAMPLES = join(import.meta.dirname, "../../samples");
const run = promisify(execFile);
const WHERE = { skip: NO_KUBERNETES ?? WHERE_ENVOY.skip, timeout: 600_000 };

const SHOP = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: default}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, ports: [{name: http, port: 8000}]}
`;
const MISTAKE = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: lost, namespace: default}
spec: {hosts: [web], http: [{route: [{destination: {host: nowhere}}]}]}
`;

if (ISTIOCTL !== "") describe("istioctl", WHERE, againstOurs);

function againstOurs(): void {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-istioctl-"));
  let server: ApiServer;
  let plane: ControlPlaneProcess;
  let agent: AgentProcess;
  let ports: AgentPorts;
  let address: string;

  before(async () => {
    server = await startApiServer({ controllers: true });
    const install = ["install", "-y", "--no-wait", "--set", "profile=minimal"];
    assert.equal((await runInstallCommand(install, { KUBECONFIG: server.kubeConfig })).code, 0);
    // Nothing carries the API server to a pod.
    await server.kubectl(["delete", "validatingwebhookconfigurations", "--all"]);
    await server.apply(SHOP);
    plane = new ControlPlaneProcess({ kubeConfig: server.kubeConfig, folder });
    address = await plane.address("secure gRPC discovery service");
    const api = await server.api();
    const root = async () => {
      const path = "/api/v1/namespaces/default/configmaps/istio-ca-root-cert";
      const map = await api.call({ path }).catch(() => undefined);
      return String(at(map?.data, "root-cert.pem") ?? "");
    };
    await eventually("the root is in the namespace", async () => (await root()) !== "");
    writePodFiles(folder, await root());
    const token = await server.kubectl(["create", "token", "web", "--audience=istio-ca"]);
    writeFileSync(join(folder, "var/run/secrets/tokens/istio-token"), token.trim());
    ports = await agentPorts();
    const settings = { POD_NAME: "web-1", SERVICE_ACCOUNT: "web", INSTANCE_IP: "10.0.0.7", CA_ADDR: address };
    const proxyConfig = JSON.stringify({ discoveryAddress: address });
    const env = agentEnvironment(ports, { ...settings, ISTIO_META_CLUSTER_ID: "Kubernetes", proxyConfig });
    agent = spawnAgent(["proxy", "sidecar", "--domain", "default.svc.cluster.local"], { cwd: folder, env });
    await agentReady(ports, agent.text);
  });
  after(async () => {
    await agent?.end();
    await plane?.end();
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const dump = async () => (await fetch(`http://127.0.0.1:${ports.admin}/config_dump?include_eds`)).text();
  async function istioctl(...args: string[]): Promise<string> {
    const env = { PATH: process.env.PATH, HOME: folder, KUBECONFIG: server.kubeConfig };
    const { stdout } = await run(ISTIOCTL, args, { env, maxBuffer: 1 << 26, timeout: 60_000 });
    return stdout;
  }
  const remote = () => ["--xds-address", address, "--insecure"];

  test("proxy-status shows the proxies that are connected", async () => {
    assert.match(await istioctl("proxy-status", ...remote()), /^web-1\.default +Kubernetes /m);
  });

  test("version shows control plane and data plane", async () => {
    const versions = await istioctl("x", "version", ...remote());
    assert.match(versions, /^control plane version: 1\.29\.6/m);
    assert.match(versions, /^data plane version: 1\.29\.6.*\(1 proxies\)/m);
  });

  test("internal-debug gives debug pages", async () => {
    assert.match(await istioctl("x", "internal-debug", "syncz", ...remote()), /web-1\.default/);
  });

  for (const [command, wanted] of [
    ["cluster", /^web\.default\.svc\.cluster\.local +8000 +- +outbound +EDS/m],
    ["listener", /^0\.0\.0\.0\S* +8000 +Trans: raw_buffer; App: http\/1\.1,h2c +Route: 8000/m],
    ["route", /^8000 +web\.default\.svc\.cluster\.local:8000/m],
    ["all", /DOMAINS/],
  ] as const) {
    test(`proxy-config ${command} --file reads what our Envoy has`, async () => {
      const file = join(folder, "dump.json");
      writeFileSync(file, await dump());
      assert.match(await istioctl("proxy-config", command, "--file", file), wanted);
    });
  }

  test("validate accepts our samples", async () => {
    const files = globSync("{bookinfo/{config,networking},httpbin,grpc/config}/*.yaml", { cwd: SAMPLES });
    assert.ok(files.length > 5);
    await istioctl("validate", ...files.flatMap((file) => ["-f", join(SAMPLES, file)]));
  });

  test("analyze reads our kinds from the API server, and finds a mistake in them", async () => {
    assert.doesNotMatch(await istioctl("analyze", "-A"), /Error/);
    await server.apply(MISTAKE);
    await assert.rejects(istioctl("analyze", "-n", "default"), { stdout: /IST0101.*nowhere/s });
  });

  test("kubectl shows, describes and explains every kind", async () => {
    const names = (await server.kubectl(["api-resources", "--categories=istio-io", "-o", "name"])).trim().split("\n");
    assert.ok(names.length >= 12);
    for (const name of names) {
      assert.match(await server.kubectl(["explain", `${name}.spec`]), /FIELDS:\n +\w+\t</, name);
    }
    assert.match(await server.kubectl(["get", names.join(",")]), /virtualservice\S+\/lost +\["web"\]/);
    assert.match(await server.kubectl(["describe", "vs", "lost"]), /Host: +nowhere/);
  });
}
