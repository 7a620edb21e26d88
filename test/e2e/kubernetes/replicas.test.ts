/** Three replicas of a control plane, whose leader is killed while configuration changes and a real Envoy looks on. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Backoff } from "#lib/async/backoff.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { follow } from "#lib/kubernetes/follow.ts";
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
import { type Front, openFront } from "../../support/kubernetes/front.ts";

const OBJECTS = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: httpbin}
`;
const service = (name: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {ports: [{name: http, port: 80}]}\n`;
const CONFIG_MAPS = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
/** A lease of 15 s has to end first. */
const ELECTION_MS = 120_000;

describe("three replicas", { skip: NO_KUBERNETES ?? WHERE_ENVOY.skip, timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-replicas-"));
  const stopping = new AbortController();
  /** Events of the roots in each namespace: `ADDED shop`. */
  const written: string[] = [];
  let server: ApiServer;
  let replicas: ControlPlaneProcess[] = [];
  let front: Front;
  let agent: AgentProcess;
  let ports: AgentPorts;

  before(async () => {
    server = await startApiServer({ controllers: true });
    await server.apply(OBJECTS);
    await server.apply(service("kept"));
    void noteRoots(server, written, stopping.signal);
    const { kubeConfig } = server;
    replicas = ["istiod-a", "istiod-b", "istiod-c"].map(
      (podName) => new ControlPlaneProcess({ kubeConfig, folder, podName }),
    );
    await Promise.all(replicas.map((replica) => replica.ready()));
    front = await openFront(
      await Promise.all(replicas.map((replica) => replica.address("secure gRPC discovery service"))),
    );
    const root = ["get", "configmap", "istio-ca-root-cert", "-o", "jsonpath={.data['root-cert\\.pem']}"];
    await eventually("the root", async () => (await server.kubectl(root).catch(() => "")) !== "", ELECTION_MS);
    writePodFiles(folder, await server.kubectl(root));
    const token = await server.kubectl(["create", "token", "httpbin", "--audience=istio-ca"]);
    writeFileSync(join(folder, "var/run/secrets/tokens/istio-token"), token.trim());
    ports = await agentPorts();
    const proxyConfig = JSON.stringify({ discoveryAddress: front.address });
    const env = agentEnvironment(ports, { proxyConfig, CA_ADDR: front.address, INSTANCE_IP: "10.244.0.7" });
    agent = spawnAgent(["proxy", "sidecar", "--domain", "default.svc.cluster.local"], { cwd: folder, env });
    await agentReady(ports, agent.text);
  });
  after(async () => {
    stopping.abort();
    await agent?.end();
    await Promise.all(replicas.map((replica) => replica.end()));
    front?.close();
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const clusters = async () => (await fetch(`http://127.0.0.1:${ports.admin}/clusters`)).text();
  const leader = async () =>
    server.kubectl(["-n", "istio-system", "get", "lease", "istio-leader", "-o", "jsonpath={.spec.holderIdentity}"]);

  test("the leader is killed: another takes over, proxies move, nothing is lost or written twice", async () => {
    const first = await leader();
    const killed = replicas.find(({ podName }) => podName === first);
    assert.ok(killed, `the leader is ${first}`);
    await killed.kill();
    const names: string[] = [];
    const lost: string[] = [];
    // Configuration changes all the time while nobody leads.
    await eventually(
      "another leads",
      async () => {
        const name = `during-${names.length}`;
        await server.apply(service(name));
        names.push(name);
        if (!(await clusters()).includes("outbound|80||kept.default")) lost.push(name);
        return (await leader()) !== first;
      },
      ELECTION_MS,
    );
    await server.kubectl(["create", "namespace", "later"]);
    const has = async (name: string) => (await clusters()).includes(`outbound|80||${name}.default`);
    for (const name of names) await eventually(name, () => has(name));
    assert.deepEqual(lost, []);
    await eventually("the root in a new namespace", () => written.includes("ADDED later"), ELECTION_MS);
    const roots = written.filter((event) => !event.startsWith("ADDED"));
    assert.deepEqual(roots, [], "nobody wrote again what was right");
    assert.equal(written.length, new Set(written).size, "each namespace got its root once");
  });

  test("the next leader goes in peace: the last one takes over at once, and signs with the same key", async () => {
    const second = await leader();
    const ending = replicas.find(({ podName }) => podName === second);
    assert.ok(ending);
    await ending.end();
    await eventually("the last one leads", async () => ![second, ""].includes(await leader()), 10_000);
    await server.apply(service("last"));
    await eventually("it serves", async () => (await clusters()).includes("outbound|80||last.default"));
    const secret = ["-n", "istio-system", "get", "secret", "istio-ca-secret", "-o", "jsonpath={.metadata.uid}"];
    assert.notEqual(await server.kubectl(secret), "");
    assert.deepEqual(
      written.filter((event) => !event.startsWith("ADDED")),
      [],
    );
  });
});

/** Notes what happens to the roots of namespaces. */
async function noteRoots(server: ApiServer, written: string[], signal: AbortSignal): Promise<void> {
  const known = new Set<string>();
  const put = ({ metadata: { namespace = "" } }: RawObject) => {
    written.push(`${known.has(namespace) ? "MODIFIED" : "ADDED"} ${namespace}`);
    known.add(namespace);
  };
  await follow({
    api: await server.api(),
    type: CONFIG_MAPS,
    fieldSelector: "metadata.name=istio-ca-root-cert",
    backoff: new Backoff({ initialMs: 100, maxMs: 1_000 }),
    signal,
    follower: {
      replace: async (objects) => {
        for (const object of objects) if (!known.has(object.metadata.namespace ?? "")) put(object);
      },
      put,
      remove: ({ metadata }) => void written.push(`DELETED ${metadata.namespace}`),
      trouble: () => {},
    },
  });
}
