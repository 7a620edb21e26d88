/** What a further cluster has of the control plane: keys from its own Secrets for its gateways, the roots of the mesh, and injection. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { SECRET_TYPE } from "#protocol/messages/type-urls.ts";
import { selfSigned } from "../../support/certificates.ts";
import { TestControlPlane } from "../../support/control-plane.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { SECRET_READER } from "../../support/kubernetes/secret-reader.ts";
import { webhookConfigurations } from "../../support/kubernetes/webhook-configurations.ts";
import { proxyOf } from "../../support/mesh.ts";
import { nodeOf, XdsClient } from "../../support/xds-client.ts";

const NAMESPACES = `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: gateway, namespace: shop}
`;
const [here, there] = [selfSigned("here.example.com"), selfSigned("there.example.com")];
const secret = (name: string, { certificate, key }: typeof here) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Secret",
    type: "kubernetes.io/tls",
    metadata: { name, namespace: "shop" },
    stringData: { "tls.crt": certificate, "tls.key": key },
  });

describe("secrets of further clusters", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let one: ApiServer;
  let two: ApiServer;
  let plane: TestControlPlane;
  before(async () => {
    [one, two] = await Promise.all([startApiServer(), startApiServer()]);
    await one.apply(NAMESPACES);
    // The right is only there, where the gateway is.
    await two.apply(NAMESPACES + SECRET_READER);
    await two.kubectl(["annotate", "namespace", "istio-system", "topology.istio.io/controlPlaneClusters=c9,c1"]);
    for (const webhook of (await webhookConfigurations()).injection) await two.apply(JSON.stringify(webhook));
    await one.apply(secret("web", here));
    await one.apply(secret("only-here", here));
    await two.apply(secret("web", there));
    const remote = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "remote", namespace: "istio-system", labels: { "istio/multiCluster": "true" } },
      stringData: { c2: await kubeConfig(two) },
    };
    await one.apply(JSON.stringify(remote));
    const env = { CLUSTER_ID: "c1", EXTERNAL_ISTIOD: "true", PLATFORM: "openshift" };
    const flags = ["--httpsAddr=127.0.0.1:0", "--clusterAliases=formerly-c2=c2"];
    plane = new TestControlPlane({ cluster: await one.api(), flags, env });
    await plane.ready();
  });
  after(async () => {
    await plane?.[Symbol.asyncDispose]();
    await Promise.all([one?.[Symbol.asyncDispose](), two?.[Symbol.asyncDispose]()]);
  });

  async function connect(server: ApiServer, clusterId: string): Promise<XdsClient> {
    const map = ["-n", "shop", "get", "configmap", "istio-ca-root-cert", "-o", "jsonpath={.data['root-cert\\.pem']}"];
    await eventually("the root", async () => (await one.kubectl(map).catch(() => "")) !== "");
    const token = (await server.kubectl(["-n", "shop", "create", "token", "gateway", "--audience=istio-ca"])).trim();
    const metadata = { CLUSTER_ID: clusterId };
    return new XdsClient(await plane.address("secure gRPC discovery service"), {
      root: await one.kubectl(map),
      headers: { authorization: `Bearer ${token}`, clusterid: clusterId },
      node: nodeOf(proxyOf({ type: "router", namespace: "shop", serviceAccount: "gateway", metadata })),
    });
  }

  async function untilHas(client: XdsClient, name: string): Promise<string> {
    client.request(SECRET_TYPE, { subscribe: [name] });
    for (;;) {
      const found = (await client.take(SECRET_TYPE)).resources.find((resource) => resource.name === name);
      if (found !== undefined) return Buffer.from(found.value).toString();
    }
  }
  const lineOf = ({ certificate }: typeof here) => certificate.split("\n")[1] ?? "";

  test("a gateway there has those of its cluster first, and follows them", async () => {
    using client = await connect(two, "c2");
    assert.ok((await untilHas(client, "kubernetes://web")).includes(lineOf(there)));
    assert.ok((await untilHas(client, "kubernetes://only-here")).includes(lineOf(here)));
    const next = selfSigned("next.example.com");
    await two.apply(secret("web", next));
    let now = "";
    while (!now.includes(lineOf(next))) {
      now = Buffer.concat((await client.take(SECRET_TYPE)).resources.map(({ value }) => value)).toString();
    }
  });

  test("a gateway that calls its cluster by another name is believed, and has them too", async () => {
    using client = await connect(two, "formerly-c2");
    assert.ok(!(await untilHas(client, "kubernetes://web")).includes(lineOf(here)));
  });

  test("a cluster that names our control plane has its roots, and webhooks that believe them", async () => {
    const rootsIn = (server: ApiServer, namespace: string) =>
      server
        .kubectl(["-n", namespace, "get", "configmap", "istio-ca-root-cert", "-o", "jsonpath={.data}"])
        .catch(() => "none");
    await eventually("roots there", async () => (await rootsIn(two, "shop")) === (await rootsIn(one, "shop")));
    assert.notEqual(await rootsIn(two, "shop"), "none");
    const bundle = [
      "get",
      "mutatingwebhookconfiguration",
      "-o",
      "jsonpath={.items[0].webhooks[0].clientConfig.caBundle}",
    ];
    await eventually("the bundle", async () => (await two.kubectl(bundle)) !== "");
    await two.kubectl(["create", "namespace", "later"]);
    await eventually("roots in a new one", async () => (await rootsIn(two, "later")) !== "none");
  });

  test("its pods are injected as its nodes and namespaces ask", async () => {
    const nodes = { v134: two, v127: one };
    for (const [name, server] of Object.entries(nodes)) {
      await server.kubectl(
        ["create", "-f", "-"],
        JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name } }),
      );
      const status = { nodeInfo: { kubeletVersion: name.replace("v1", "v1."), ...NO_NODE_INFO } };
      const patch = ["--subresource=status", "--type=merge", "-p", JSON.stringify({ status })];
      await server.kubectl(["patch", "node", name, ...patch]);
    }
    await two.kubectl(["annotate", "namespace", "shop", "openshift.io/sa.scc.uid-range=1000650000/10000"]);
    const address = await plane.address("webhook service");
    await eventually("native sidecars with a user of the namespace there", async () => {
      const added = await injected(address, "/inject/cluster/c2");
      return /"restartPolicy":"Always"/.test(added) && /"runAsUser":1000659999/.test(added);
    });
    await eventually("neither of them here", async () => {
      const added = await injected(address, "/inject");
      return !/"restartPolicy":"Always"/.test(added) && /"runAsUser":1337/.test(added);
    });
  });

  test("the same account has no right here", async () => {
    using client = await connect(one, "c1");
    client.request(SECRET_TYPE, { subscribe: ["kubernetes://web"] });
    assert.deepEqual((await client.take(SECRET_TYPE)).resources, []);
    await plane.logged(/may not read the secrets.*cluster=c1/);
  });
});

const NO_NODE_INFO = Object.fromEntries(
  ["machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"]
    .concat("kubeProxyVersion", "operatingSystem", "architecture")
    .map((name) => [name, ""]),
);

/** The patch of a pod of the namespace `shop`, as an API server would ask for it. */
async function injected(address: string, path: string): Promise<string> {
  const object = { metadata: { name: "web" }, spec: { containers: [{ name: "web", image: "web" }] } };
  const review = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview" };
  const body = JSON.stringify({ ...review, request: { uid: "1", namespace: "shop", operation: "CREATE", object } });
  const headers = { "content-type": "application/json" };
  const sent = request(`https://${address}${path}`, { method: "POST", headers, rejectUnauthorized: false });
  sent.end(body);
  const [answer] = await once(sent, "response");
  const { response } = JSON.parse(await text(answer));
  return Buffer.from(response.patch, "base64").toString();
}

/** Holds everything itself. */
async function kubeConfig(server: ApiServer): Promise<string> {
  const config = JSON.parse(await readFile(server.kubeConfig, "utf8"));
  const [{ cluster }] = config.clusters;
  const ca = await readFile(cluster["certificate-authority"]);
  config.clusters[0].cluster = { server: cluster.server, "certificate-authority-data": ca.toString("base64") };
  return JSON.stringify(config);
}
