/** What may go wrong between a control plane and its API server, and what proxies notice of it: nothing. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { keepNamespaceMaps, ROOT_MAP } from "#controllers/namespace-maps.ts";
import { KubernetesApi, MERGE_PATCH } from "#lib/kubernetes/api-client.ts";
import { leadWhenElected } from "#lib/kubernetes/leader-election.ts";
import { createLogger, SILENT } from "#lib/log/log.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import { type KubernetesSource, kubernetesSource } from "#sources/kubernetes/kubernetes-source.ts";
import { TestControlPlane } from "../../support/control-plane.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { type Front, openFront } from "../../support/kubernetes/front.ts";
import { proxyOf } from "../../support/mesh.ts";
import { nodeOf, XdsClient } from "../../support/xds-client.ts";

const service = (name: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {ports: [{name: http, port: 80}]}\n`;
const entry = (spec: object) =>
  JSON.stringify({
    apiVersion: "networking.istio.io/v1",
    kind: "ServiceEntry",
    metadata: { name: "outside", namespace: "default" },
    spec,
  });
const LATE_MS = 60_000;

/** A proxy that remembers its clusters, and whether it ever lost one. */
class WatchingProxy implements Disposable {
  readonly clusters = new Set<string>();
  readonly lost: string[] = [];
  readonly #client: XdsClient;

  constructor(address: string) {
    this.#client = new XdsClient(address, { node: nodeOf(proxyOf()), patienceMs: 600_000 });
    this.#client.request(CLUSTER_TYPE);
    void this.#read();
  }

  has(name: string): boolean {
    return this.clusters.has(`outbound|80||${name}`);
  }

  async #read(): Promise<void> {
    try {
      for (;;) {
        const { resources, removed } = await this.#client.take(CLUSTER_TYPE);
        for (const { name } of resources) this.clusters.add(name);
        this.lost.push(...removed);
      }
    } catch {
      // The stream has ended, which `lost` or a missing cluster would show.
    }
  }

  [Symbol.dispose](): void {
    this.#client[Symbol.dispose]();
  }
}

describe("faults of the API server", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let server: ApiServer;
  let plane: TestControlPlane;
  let proxy: WatchingProxy;
  before(async () => {
    server = await startApiServer({ controllers: true });
    await server.define(customResourceDefinitions());
    await server.kubectl(["create", "namespace", "istio-system"]);
    await server.apply(service("kept"));
    plane = new TestControlPlane({ cluster: await server.api() });
    await plane.ready();
    proxy = new WatchingProxy(await plane.address("gRPC discovery service"));
    await eventually("clusters", () => proxy.has("kept.default.svc.cluster.local"));
  });
  after(async () => {
    proxy?.[Symbol.dispose]();
    await plane?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  /** What is applied now reaches the proxy, which lost nothing. */
  async function goesOn(name: string): Promise<void> {
    await server.apply(service(name));
    await eventually(name, () => proxy.has(`${name}.default.svc.cluster.local`), LATE_MS);
    assert.deepEqual(proxy.lost, []);
  }

  test("etcd that is gone and comes back", async () => {
    await server.stop("etcd");
    await assert.rejects(server.kubectl(["--request-timeout=2s", "create", "namespace", "never"]));
    assert.deepEqual(proxy.lost, []);
    await server.startEtcd();
    await eventually(
      "the API server writes again",
      () =>
        server.apply(service("after-etcd")).then(
          () => true,
          () => false,
        ),
      LATE_MS,
    );
    await goesOn("after-etcd");
  });

  test("an API server that is killed again and again", async () => {
    for (const round of [1, 2]) {
      await server.stop("kube-apiserver");
      await server.start();
      await goesOn(`round-${round}`);
    }
  });

  test("an API server that falls silent for a while", async () => {
    server.pause("kube-apiserver", true);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    server.pause("kube-apiserver", false);
    await goesOn("after-silence");
  });

  test("watches that stall without a word are begun anew", async ({ signal }) => {
    using front = await stallingFront(server);
    const { access } = await server.api();
    const api = new KubernetesApi({ ...access, server: `https://${front.address}` });
    const source: KubernetesSource = kubernetesSource({
      api,
      features: DEFAULT_FEATURES,
      log: SILENT,
      revision: "default",
      meshConfigMap: { namespace: "istio-system", name: "istio" },
      silenceMs: 1_000,
    });
    const stopping = new AbortController();
    const running = source.run(AbortSignal.any([signal, stopping.signal]));
    const knows = (name: string) => source.current().services.some((each) => each.name === name);
    await eventually("services", () => knows("kept"));
    front.stall();
    await server.apply(service("while-stalled"));
    await eventually("what came meanwhile", () => knows("while-stalled"), LATE_MS);
    stopping.abort();
    await running;
    api.close();
  });

  test("an object that no longer passes the checks keeps its last good version", async () => {
    const good = { hosts: ["outside.example.com"], ports: [{ number: 80, name: "http", protocol: "HTTP" }] };
    await server.apply(entry({ ...good, resolution: "DNS" }));
    await eventually("the host", () => proxy.has("outside.example.com"));
    await server.apply(entry({ ...good, resolution: "DNS", addresses: ["no address"] }));
    await plane.logged(/ServiceEntry\/default\/outside: spec\.addresses/);
    await goesOn("after-bad");
    await server.apply(entry({ ...good, hosts: ["outside.example.com", "more.example.com"], resolution: "DNS" }));
    await eventually("the next good one", () => proxy.has("more.example.com"));
  });

  test("a namespace that is deleted while it is written to", async () => {
    const names = Array.from({ length: 5 }, (_, i) => `fleeting-${i}`);
    await Promise.all(names.map((name) => server.kubectl(["create", "namespace", name])));
    await Promise.all(names.map((name) => server.kubectl(["delete", "namespace", name])));
    await server.kubectl(["create", "namespace", "lasting"]);
    const map = ["-n", "lasting", "get", "configmap", "istio-ca-root-cert"];
    await eventually("its root", async () => (await server.kubectl(map).catch(() => "")) !== "");
    // Others may have met the faults above.
    const complaints = plane.lines.filter((line) => /cannot be put into a namespace.*namespace=fleeting-/.test(line));
    assert.deepEqual(complaints, []);
  });

  test("a right that is missing is named with the rule to add, and waited for", async () => {
    const accounts = ["-n", "istio-system"];
    await server.kubectl([...accounts, "create", "serviceaccount", "poor"]);
    const role = "--verb=get,list,watch";
    await server.kubectl(["create", "clusterrole", "some", role, "--resource=services,nodes,namespaces,secrets"]);
    const binding = ["create", "clusterrolebinding"];
    await server.kubectl([...binding, "some", "--clusterrole=some", "--serviceaccount=istio-system:poor"]);
    const token = (await server.kubectl([...accounts, "create", "token", "poor"])).trim();
    const lines: string[] = [];
    const source = kubernetesSource({
      api: await server.api(token),
      features: DEFAULT_FEATURES,
      log: createLogger({ write: (line) => lines.push(line) }),
      revision: "default",
      meshConfigMap: { namespace: "istio-system", name: "istio" },
    });
    const stopping = new AbortController();
    let isThere = false;
    source.subscribe(() => {
      isThere = true;
    });
    const running = source.run(stopping.signal);
    const rule =
      /add to the ClusterRole of this account: apiGroups: \[""\], resources: \["pods"\], verbs: \["get", "list", "watch"\]/;
    await eventually("the rule", () => lines.some((line) => rule.test(line)));
    assert.ok(source.unread().some((text) => text.startsWith("pods: ")));
    assert.ok(!isThere);
    await server.kubectl([...binding, "all", "--clusterrole=cluster-admin", "--serviceaccount=istio-system:poor"]);
    await eventually("the first snapshot", () => isThere, LATE_MS);
    stopping.abort();
    await running;
  });

  test("two control planes that both think a namespace is theirs do not write for ever", async ({ signal }) => {
    await server.kubectl(["create", "namespace", "disputed"]);
    const path = "/api/v1/namespaces/disputed/configmaps/istio-ca-root-cert";
    const api = await server.api();
    await eventually("the root", () =>
      api.call({ path }).then(
        () => true,
        () => false,
      ),
    );
    const lines: string[] = [];
    const before = Number((await api.call({ path })).metadata.resourceVersion);
    void keepNamespaceMaps(
      {
        map: ROOT_MAP,
        api: await server.api(),
        text: () => "OTHER",
        onText: () => () => {},
        isOurs: ({ metadata }) => metadata.name === "disputed",
        onOurs: () => () => {},
        log: createLogger({ write: (line) => lines.push(line) }),
      },
      signal,
    );
    const told = /is there a second control plane.*namespace=disputed/;
    // Whoever waits first keeps the other from having to.
    await eventually("one of them tells", () => [...lines, ...plane.lines].some((line) => told.test(line)));
    // With nobody waiting there would be hundreds of versions by now.
    const versions = Number((await api.call({ path })).metadata.resourceVersion) - before;
    assert.ok(versions < 100, `${versions} writes`);
  });

  test("clocks that differ by years elect one leader all the same", async ({ signal }) => {
    const api = await server.api();
    const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    const lease = (holderIdentity: string, renewTime: string) => ({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "skewed" },
      spec: { holderIdentity, renewTime, leaseDurationSeconds: 15 },
    });
    await api.call({ method: "POST", path: leases, body: lease("from-the-future", "2099-01-01T00:00:00.000000Z") });
    // Long enough for the other one to write in time, however slow it is.
    const timing = { leaseMs: 10_000, renewLimitMs: 8_000, retryMs: 50 };
    let leads = false;
    const lead = async (over: AbortSignal) => {
      leads = true;
      await new Promise((resolve) => over.addEventListener("abort", resolve));
      leads = false;
    };
    const options = { api, namespace: "default", name: "skewed", identity: "us", log: SILENT, timing };
    void leadWhenElected(options, lead, signal);
    // As long as the other one writes, whatever the time it thinks it is, it leads.
    for (const year of [1999, 2001, 2003, 2005]) {
      const body = lease("from-the-past", `${year}-01-01T00:00:00.000000Z`);
      await api.call({ method: "PATCH", path: `${leases}/skewed`, body, contentType: MERGE_PATCH });
      await new Promise((resolve) => setTimeout(resolve, 4 * timing.retryMs));
      assert.equal(leads, false);
    }
    await eventually("we lead", () => leads);
  });
});

/** In front of an API server. */
async function stallingFront(server: ApiServer): Promise<Front & Disposable> {
  const front = await openFront([new URL(server.url).host]);
  return { ...front, [Symbol.dispose]: () => front.close() };
}
