/** A mesh of two clusters, each with an API server of its own. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { tokenReviewAuthenticator } from "#authn/token-review.ts";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { createLogger } from "#lib/log/log.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import { inCluster } from "#model/in-cluster.ts";
import { type KubernetesSource, kubernetesSource } from "#sources/kubernetes/kubernetes-source.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";

const system = (network: string) => `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system, labels: {topology.istio.io/network: ${network}}}
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {topology.kubernetes.io/region: ${network}-region}}
`;
const service = (name: string) => `
---
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: default}
spec: {ports: [{name: http, port: 80}], selector: {app: ${name}}}
`;
const slice = (name: string, address: string) => `
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: default, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [${address}], conditions: {ready: true}}]
`;

const ENTRY = `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: chosen, namespace: default}
spec:
  hosts: [chosen.example.com]
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  location: MESH_INTERNAL
  resolution: STATIC
  workloadSelector: {labels: {app: chosen}}
`;
const pod = (name: string) => `
---
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: default, labels: {app: chosen}}
spec: {containers: [{name: c, image: i}]}
`;

const entry = (name: string, labels: object, address: string) => `
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: ${name}, namespace: default}
spec: ${JSON.stringify({ address, labels })}
`;

describe("a mesh of two clusters", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let one: ApiServer;
  let two: ApiServer;
  let source: KubernetesSource;
  const stopping = new AbortController();
  let running: Promise<void>;
  const lines: string[] = [];

  before(async () => {
    [one, two] = await Promise.all([startApiServer(), startApiServer()]);
    const isWanted = (definition: object) => JSON.stringify(definition).includes("serviceentries.");
    await one.define(customResourceDefinitions().filter(isWanted));
    await one.apply(system("net1") + service("both") + slice("both", "10.1.0.1"));
    await two.apply(
      system("net2") +
        service("both") +
        slice("both", "10.2.0.1") +
        service("only-two") +
        slice("only-two", "10.2.0.2"),
    );
    source = kubernetesSource({
      api: await one.api(),
      features: { ...DEFAULT_FEATURES, clusterId: "c1" },
      log: createLogger({ write: (line) => lines.push(line) }),
      revision: "default",
      meshConfigMap: { namespace: "istio-system", name: "istio" },
    });
    const first = new Promise<void>((resolve) => void source.subscribe(() => resolve()));
    running = source.run(stopping.signal);
    await Promise.race([first, running]);
  });
  after(async () => {
    stopping.abort();
    await running;
    await Promise.all([one?.[Symbol.asyncDispose](), two?.[Symbol.asyncDispose]()]);
  });

  /** `address@cluster/network` of the endpoints of a service. */
  const endpointsOf = (name: string) => {
    const { services, endpoints } = source.current();
    const found = services.find(({ hostname }) => hostname === `${name}.default.svc.cluster.local`);
    if (found === undefined) return "no service";
    const set = [...endpoints].find(([key]) => key.includes(found.hostname))?.[1];
    return set?.endpoints.map(({ address, clusterId, network }) => `${address}@${clusterId}/${network}`).join(" ");
  };
  /** The same of the ServiceEntry. */
  const chosen = () => {
    const set = [...source.current().endpoints].find(([key]) => key.includes("chosen.example.com"))?.[1];
    return set?.endpoints.map(({ address, clusterId, network }) => `${address}@${clusterId}/${network}`).join(" ");
  };
  const untilEndpoints = (name: string, wanted: string) =>
    eventually(`${name}: ${wanted}`, () => endpointsOf(name) === wanted);
  /** Kubeconfigs of a Secret have to hold everything themselves. */
  const kubeConfig = async (server: ApiServer, user: object = { token: "admin-token" }) => {
    const config = JSON.parse(await readFile(server.kubeConfig, "utf8"));
    const [{ cluster }] = config.clusters;
    const ca = await readFile(cluster["certificate-authority"]);
    config.clusters[0].cluster = { server: cluster.server, "certificate-authority-data": ca.toString("base64") };
    config.users[0].user = user;
    return JSON.stringify(config);
  };
  const secret = (name: string, data: Readonly<Record<string, string>>) =>
    one.apply(
      JSON.stringify({
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name, namespace: "istio-system", labels: { "istio/multiCluster": "true" } },
        stringData: data,
      }),
    );

  test("a cluster joins by its Secret: services are one, endpoints know where they are", async () => {
    assert.equal(endpointsOf("both"), "10.1.0.1@c1/net1");
    assert.equal(endpointsOf("only-two"), "no service");
    await secret("remote", { c2: await kubeConfig(two) });
    await untilEndpoints("both", "10.1.0.1@c1/net1 10.2.0.1@c2/net2");
    await untilEndpoints("only-two", "10.2.0.2@c2/net2");
    await two.apply(slice("both", "10.2.0.9"));
    await untilEndpoints("both", "10.1.0.1@c1/net1 10.2.0.9@c2/net2");
  });

  test("a ServiceEntry selects pods of all clusters", async () => {
    await one.apply(pod("near") + ENTRY);
    await two.apply(pod("far"));
    for (const [server, name, podIP] of [
      [one, "near", "10.1.0.8"],
      [two, "far", "10.2.0.8"],
    ] as const) {
      const conditions = [{ type: "Ready", status: "True" }];
      const patch = JSON.stringify({ status: { phase: "Running", podIP, podIPs: [{ ip: podIP }], conditions } });
      await server.kubectl(["patch", "pod", name, "--subresource=status", "-p", patch]);
    }
    await eventually("both pods", () => chosen() === "10.1.0.8@c1/net1 10.2.0.8@c2/net2");
  });

  test("WorkloadEntries of a cluster are workloads of its Services, and of ServiceEntries of all, once there is such a kind", async () => {
    const isEntry = (definition: object) => JSON.stringify(definition).includes("workloadentries.");
    await two.define(customResourceDefinitions().filter(isEntry));
    await two.apply(entry("vm", { app: "only-two" }, "10.2.9.1") + entry("chosen-vm", { app: "chosen" }, "10.2.9.2"));
    await untilEndpoints("only-two", "10.2.0.2@c2/net2 10.2.9.1@c2/");
    await eventually("the entry beside the pods", () => chosen() === "10.1.0.8@c1/net1 10.2.9.2@c2/ 10.2.0.8@c2/net2");
    await two.kubectl(["delete", "workloadentries", "vm", "chosen-vm"]);
    await untilEndpoints("only-two", "10.2.0.2@c2/net2");
    await eventually("the pods", () => chosen() === "10.1.0.8@c1/net1 10.2.0.8@c2/net2");
  });

  test("proxies of each cluster call the address that the service has there", async () => {
    const addressIn = (clusterId: string) =>
      inCluster(source.current(), clusterId).services.find(({ name }) => name === "both")?.addresses[0];
    const clusterIp = (server: ApiServer) =>
      server.kubectl(["get", "service", "both", "-o", "jsonpath={.spec.clusterIP}"]);
    const [here, there] = [await clusterIp(one), await clusterIp(two)];
    assert.notEqual(here, there);
    assert.deepEqual([addressIn("c1"), addressIn("c2")], [here, there]);
  });

  test("workloads have the trust domain that the mesh config of their cluster names", async () => {
    const identities = () => {
      const set = [...source.current().endpoints].find(([key]) => key.includes("chosen.example.com"))?.[1];
      return set?.identities.join(" ");
    };
    const near = "spiffe://cluster.local/ns/default/sa/default";
    assert.equal(identities(), near);
    await two.apply(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\ndata: {mesh: 'trustDomain: far.example.com'}\n",
    );
    await eventually("both", () => identities() === `${near} spiffe://far.example.com/ns/default/sa/default`);
  });

  test("tokens of each cluster are reviewed there", async () => {
    const apiOf = (clusterId: string) => source.apiOf(clusterId);
    const options = { audiences: ["istio-ca"], trustDomain: () => "cluster.local", apiOf };
    const authenticate = tokenReviewAuthenticator({ api: await one.api(), ...options });
    await two.apply("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: remote, namespace: default}\n");
    const token = (await two.kubectl(["create", "token", "remote", "--audience=istio-ca"])).trim();
    const ask = (clusterId: string | undefined) =>
      authenticate({ authorization: `Bearer ${token}`, certificate: undefined, clusterId });
    const there = await ask("c2");
    assert.ok(there !== undefined && "caller" in there, JSON.stringify(there));
    assert.equal(there.caller.identity, "spiffe://cluster.local/ns/default/sa/remote");
    assert.match(JSON.stringify(await ask(undefined)), /does not accept the token/);
    assert.match(JSON.stringify(await ask("c9")), /cluster \\"c9\\", which is not of the mesh/);
  });

  test("a cluster that is down keeps what it had, and costs the others nothing", async () => {
    await two.stop("kube-apiserver");
    await eventually("told", () =>
      lines.some((line) => line.includes('cluster "c2"') && line.includes("cannot be read")),
    );
    await one.apply(slice("both", "10.1.0.7"));
    await untilEndpoints("both", "10.1.0.7@c1/net1 10.2.0.9@c2/net2");
    await two.start();
    await two.apply(slice("both", "10.2.0.3"));
    await eventually("both", () => endpointsOf("both") === "10.1.0.7@c1/net1 10.2.0.3@c2/net2");
  });

  test("kubeconfigs that would run programs or read files are refused, as are clusters that there are already", async () => {
    const wrong = [
      [{ exec: { command: "touch", args: ["/tmp/x"] } }, "exec is not allowed"],
      [{ tokenFile: "/etc/passwd" }, "tokenFile is not allowed"],
      [{ "client-certificate": "/c", "client-key": "/k" }, "client-key is not allowed"],
      [{ "auth-provider": { name: "gcp" } }, "auth-provider gcp is not allowed"],
    ] as const;
    for (const [i, [user, reason]] of wrong.entries()) {
      await secret(`wrong-${i}`, { [`x${i}`]: await kubeConfig(two, user) });
      await eventually(reason, () => lines.some((line) => line.includes(reason)));
    }
    await secret("garbage", { other: "garbage" });
    await eventually("garbage", () => lines.some((line) => /cannot join.*garbage|garbage.*cannot join/.test(line)));
    await secret("second", { c1: await kubeConfig(two), c2: await kubeConfig(two) });
    await eventually("own", () => lines.some((line) => line.includes("names our own cluster")));
    await eventually("double", () => lines.some((line) => line.includes("another Secret has that cluster already")));
    assert.equal(endpointsOf("both"), "10.1.0.7@c1/net1 10.2.0.3@c2/net2");
  });

  test("an account that may not read Secrets and ConfigMaps there is told so, and not waited for", async () => {
    const names = ["services", "pods", "nodes", "namespaces", "endpointslices.discovery.k8s.io"].join();
    await two.kubectl(["create", "clusterrole", "poor", "--verb=get,list,watch", `--resource=${names}`]);
    await two.apply("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: poor, namespace: default}\n");
    const binding = ["create", "clusterrolebinding", "poor", "--clusterrole=poor", "--serviceaccount=default:poor"];
    await two.kubectl(binding);
    const token = (await two.kubectl(["create", "token", "poor"])).trim();
    await secret("poor", { c3: await kubeConfig(two, { token }) });
    await untilEndpoints("both", "10.1.0.7@c1/net1 10.2.0.3@c2/net2 10.2.0.3@c3/net2");
    await eventually("told", () => lines.some((line) => /cluster "c3": secrets.*resources: \["secrets"\]/.test(line)));
    assert.deepEqual(source.unread(), []);
    await one.kubectl(["-n", "istio-system", "delete", "secret", "poor"]);
  });

  test("a cluster that does not answer at the start is waited for as long as is set", async ({ signal }) => {
    const config = JSON.parse(await kubeConfig(two));
    config.clusters[0].cluster.server = "https://127.0.0.1:1";
    await secret("dead", { c4: JSON.stringify(config) });
    const open = async (patienceMs: number) => {
      const own = kubernetesSource({
        api: await one.api(),
        features: { ...DEFAULT_FEATURES, clusterId: "c1" },
        log: createLogger({ write: () => {} }),
        revision: "default",
        meshConfigMap: { namespace: "istio-system", name: "istio" },
        remotes: { patienceMs },
      });
      let isThere = false;
      own.subscribe(() => {
        isThere = true;
      });
      void own.run(signal);
      return { source: own, isThere: () => isThere };
    };
    const [brief, endless] = [await open(500), await open(0)];
    await eventually("the first snapshot", () => brief.isThere());
    const waits = () => endless.source.unread().some((text) => text.startsWith('cluster "c4"'));
    await eventually("the other one knows of the cluster", waits);
    assert.ok(!endless.isThere());
    await one.kubectl(["-n", "istio-system", "delete", "secret", "dead"]);
    await eventually("without it", () => endless.isThere());
  });

  test("a cluster leaves with its Secret", async () => {
    await one.kubectl(["-n", "istio-system", "delete", "secret", "remote", "second"]);
    await untilEndpoints("both", "10.1.0.7@c1/net1");
    await eventually("no service", () => endpointsOf("only-two") === "no service");
  });
});
