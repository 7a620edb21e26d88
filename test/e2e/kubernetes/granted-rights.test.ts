/** The rights that the chart grants, held against what the API server was asked for: none is missing, and none is idle. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { at } from "#install/fixture.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { CLUSTER_TYPE, HEALTH_TYPE, SECRET_TYPE } from "#protocol/messages/type-urls.ts";
import { TestControlPlane } from "../../support/control-plane.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { runInstallCommand } from "../../support/install-command.ts";
import {
  type ApiServer,
  type AuditedRequest,
  NO_KUBERNETES,
  startApiServer,
} from "../../support/kubernetes/api-server.ts";
import { proxyOf } from "../../support/mesh.ts";
import { nodeOf, XdsClient } from "../../support/xds-client.ts";

const COMMON = {
  profile: "minimal",
  components: { ingressGateways: [{ name: "istio-ingressgateway", enabled: true }] },
  // Namespaces may leave the mesh.
  meshConfig: { discoverySelectors: [{ matchExpressions: [{ key: "outside", operator: "DoesNotExist" }] }] },
};
const ENVIRONMENT = {
  PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: "200ms",
  // The first root is to be replaced at once.
  CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: "100",
  CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: "1s",
};
const USUAL = { ...COMMON, values: { pilot: { env: ENVIRONMENT } } };
/** Everything that needs rights is switched on. */
const EVERYTHING = {
  ...COMMON,
  values: {
    global: {
      externalIstiod: true,
      istiod: { enableAnalysis: true },
      multiCluster: { enabled: true },
    },
    pilot: { env: { ...ENVIRONMENT, PILOT_ENABLE_STATUS: "true", PILOT_ANALYSIS_INTERVAL: "1s" } },
  },
};
const OTHER_CLUSTER = {
  profile: "minimal",
  values: { global: { multiCluster: { enabled: true } }, istiodRemote: { enabled: true } },
};

const WORKLOADS = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: vm, namespace: default}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: istio}
spec: {controller: istio.io/ingress-controller}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: default}
spec: {ingressClassName: istio, defaultBackend: {service: {name: web, port: {number: 80}}}}
`;
/** One of each kind that has an effect. */
const CONFIGURATION: readonly (readonly [string, object])[] = [
  ["networking.istio.io/v1 VirtualService", { hosts: ["a"], http: [{ route: [{ destination: { host: "b" } }] }] }],
  ["networking.istio.io/v1 DestinationRule", { host: "b" }],
  [
    "networking.istio.io/v1 Gateway",
    { servers: [{ port: { number: 80, name: "http", protocol: "HTTP" }, hosts: ["*"] }] },
  ],
  [
    "networking.istio.io/v1 ServiceEntry",
    { hosts: ["b"], ports: [{ number: 80, name: "http", protocol: "HTTP" }], resolution: "DNS" },
  ],
  ["networking.istio.io/v1 WorkloadEntry", { address: "10.1.1.1" }],
  ["networking.istio.io/v1 WorkloadGroup", { template: { serviceAccount: "vm", ports: { http: 8080 } } }],
  ["networking.istio.io/v1 Sidecar", { egress: [{ hosts: ["./*"] }] }],
  ["networking.istio.io/v1alpha3 EnvoyFilter", { configPatches: [] }],
  ["networking.istio.io/v1beta1 ProxyConfig", { concurrency: 1 }],
  ["security.istio.io/v1 AuthorizationPolicy", {}],
  ["security.istio.io/v1 PeerAuthentication", {}],
  ["security.istio.io/v1 RequestAuthentication", {}],
];
const SYSTEM = "istio-system";
const ISTIOD = `system:serviceaccount:${SYSTEM}:istiod`;
const READER = `system:serviceaccount:${SYSTEM}:istio-reader-service-account`;

describe("rights that the chart grants", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-rights-"));
  let one: ApiServer;
  let two: ApiServer;
  let plane: TestControlPlane;
  before(async () => {
    [one, two] = await Promise.all([
      startApiServer({ controllers: true, audit: true }),
      startApiServer({ controllers: true, audit: true }),
    ]);
  });
  after(async () => {
    await Promise.all([one?.[Symbol.asyncDispose](), two?.[Symbol.asyncDispose]()]);
    rmSync(folder, { recursive: true, force: true });
  });

  test("suffice for a usual installation", async () => {
    await install(one, USUAL);
    await one.apply(WORKLOADS);
    for (const object of CONFIGURATION) await one.apply(objectOf(object));
    await untilMay(one, "istiod", ["create", "leases", "-n", SYSTEM]);
    plane = await start();
    await using _ = plane;
    await doWork(one);
    await plane.stop();
    await hasAllRights(one, ISTIOD);
  });

  test("suffice when everything is switched on, here and in another cluster", async () => {
    await install(one, EVERYTHING);
    await install(two, OTHER_CLUSTER);
    await two.kubectl(["annotate", "namespace", SYSTEM, "topology.istio.io/controlPlaneClusters=Kubernetes"]);
    await joinCluster();
    await untilMay(one, "istiod", ["patch", "configmaps", "-n", SYSTEM]);
    await untilMay(two, "istio-reader-service-account", ["create", "configmaps", "-A"]);
    plane = await start();
    await using _ = plane;
    for (const server of [one, two]) await doWork(server);
    await eventually("the status of each kind", async () => {
      const types = await one.kubectl(["get", "istio-io", "-o", "jsonpath={.items[*].status.conditions[*].type}"]);
      return (types.match(/Reconciled/g)?.length ?? 0) >= CONFIGURATION.length;
    });
    await plane.stop();
    await hasAllRights(one, ISTIOD);
    await hasAllRights(two, READER);
  });

  test("are needed: each was used", async () => {
    for (const [server, user] of [
      [one, ISTIOD],
      [two, READER],
    ] as const) {
      const asked = await server.asked(user);
      const idle = (await grants(server, user)).filter((grant) => !asked.some((request) => isUse(request, grant)));
      assert.deepEqual(idle.map(grantName), [], user);
    }
  });

  async function install(server: ApiServer, spec: object): Promise<void> {
    const file = join(folder, `${server === one ? "one" : "two"}.yaml`);
    writeFileSync(file, JSON.stringify({ kind: "IstioOperator", spec }));
    const { code, stderr } = await runInstallCommand(["install", "-f", file, "-y", "--no-wait"], {
      KUBECONFIG: server.kubeConfig,
    });
    assert.equal(code, 0, stderr);
    await letUnchecked(server);
  }

  /** Services lead nowhere here, so security objects, which are never stored unchecked, could not be stored at all. */
  async function letUnchecked(server: ApiServer): Promise<void> {
    const list = JSON.parse(await server.kubectl(["get", "validatingwebhookconfigurations", "-o", "json"]));
    for (const { metadata, webhooks } of list.items as readonly { metadata: { name: string }; webhooks: object[] }[]) {
      const patch = webhooks.map((_, i) => ({ op: "replace", path: `/webhooks/${i}/failurePolicy`, value: "Ignore" }));
      const command = ["patch", "validatingwebhookconfiguration", metadata.name, "--type=json", "-p"];
      await server.kubectl([...command, JSON.stringify(patch)]);
    }
  }

  /** What the chart tells the control plane, but for what is of its pod. */
  async function environment(): Promise<Readonly<Record<string, string>>> {
    const deployment = JSON.parse(await one.kubectl(["-n", SYSTEM, "get", "deployment", "istiod", "-o", "json"]));
    const env = at(deployment, "spec", "template", "spec", "containers", 0, "env") as readonly Variable[];
    const ofPod = ["KUBECONFIG", "ROOT_CA_DIR"];
    return Object.fromEntries(
      env.flatMap(({ name, value }) => (value === undefined || ofPod.includes(name) ? [] : [[name, value]])),
    );
  }

  /** The second cluster, as somebody who may do there what the account for it may. */
  async function joinCluster(): Promise<void> {
    const config = JSON.parse(await readFile(two.kubeConfig, "utf8"));
    const [{ cluster }] = config.clusters;
    const ca = await readFile(cluster["certificate-authority"]);
    config.clusters[0].cluster = { server: cluster.server, "certificate-authority-data": ca.toString("base64") };
    config.users[0].user = { token: await tokenOf(two, "istio-reader-service-account") };
    const metadata = { name: "remote", namespace: SYSTEM, labels: { "istio/multiCluster": "true" } };
    const stringData = { c2: JSON.stringify(config) };
    await one.apply(JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata, stringData }));
  }

  /** A proxy with a token of its cluster. */
  async function connect(server: ApiServer, proxy: Parameters<typeof proxyOf>[0]): Promise<XdsClient> {
    const { namespace = "default", serviceAccount = "default" } = proxy ?? {};
    const token = await tokenOf(server, serviceAccount, { namespace, audience: "istio-ca" });
    const root = await one.kubectl(mapIn("default", "{.data['root-cert\\.pem']}"));
    const clusterid = server === one ? "Kubernetes" : "c2";
    return new XdsClient(await plane.address("secure gRPC discovery service"), {
      root,
      headers: { authorization: `Bearer ${token}`, clusterid },
      node: nodeOf(proxyOf({ ...proxy, metadata: { ...proxy?.metadata, CLUSTER_ID: clusterid } })),
    });
  }

  /** A control plane as the chart runs it. */
  async function start(): Promise<TestControlPlane> {
    const env = { POD_NAME: "istiod-1", POD_NAMESPACE: SYSTEM, ...(await environment()) };
    const started = new TestControlPlane({ cluster: await one.api(await tokenOf(one, "istiod")), env });
    await started.ready();
    await started.logged(/elected as leader/);
    return started;
  }

  /** Whatever makes it ask for something in a cluster. */
  async function doWork(server: ApiServer): Promise<void> {
    await upsetRoots(server);
    await readSecrets(server);
    if (server !== one) return;
    await changeBalancer();
    await registerWorkload();
    await eventually("another root", async () =>
      (await one.asked(ISTIOD)).some(({ verb, resource }) => `${verb} ${resource}` === "update secrets"),
    );
  }

  async function hasAllRights(server: ApiServer, user: string): Promise<void> {
    const forbidden = (await server.asked(user)).filter(({ isForbidden }) => isForbidden);
    assert.deepEqual([...new Set(forbidden.map(nameOf))], []);
    assert.doesNotMatch(plane.lines.join(""), /forbidden|add to the ClusterRole/i);
  }

  /** Roots that somebody changes or that are of a namespace which leaves the mesh. */
  async function upsetRoots(server: ApiServer): Promise<void> {
    await server.kubectl(["create", "namespace", "leaving"]);
    for (const [map, key] of [
      ["istio-ca-root-cert", "root-cert.pem"],
      ["istio-ca-crl", "ca-crl.pem"],
    ] as const) {
      const has = (namespace: string) => server.kubectl(mapIn(namespace, "{.data}", map)).catch(() => "none");
      await eventually(`${map} of a new namespace`, async () => (await has("leaving")) !== "none");
      const patch = JSON.stringify({ data: { [key]: "wrong" } });
      await server.kubectl(["patch", "configmap", map, "--type=merge", "-p", patch]);
      await eventually(`${map} is put right`, async () => !(await has("default")).includes("wrong"));
    }
    await server.kubectl(["label", "namespace", "leaving", "outside=true"]);
    for (const map of ["istio-ca-root-cert", "istio-ca-crl"])
      await eventually(`${map} is gone`, async () =>
        server.kubectl(mapIn("leaving", "{.data}", map)).then(
          () => false,
          () => true,
        ),
      );
    await server.kubectl(["delete", "namespace", "leaving"]);
  }

  /** Where the gateway is reached is told by Ingresses. */
  async function changeBalancer(): Promise<void> {
    const patch = JSON.stringify({ status: { loadBalancer: { ingress: [{ ip: "7.7.7.7" }] } } });
    const service = ["-n", SYSTEM, "patch", "service", "istio-ingressgateway"];
    await one.kubectl([...service, "--subresource=status", "--type=merge", "-p", patch]);
    const shown = ["get", "ingress", "web", "-o", "jsonpath={.status.loadBalancer.ingress[*].ip}"];
    await eventually("the address of the gateway", async () => (await one.kubectl(shown)) === "7.7.7.7");
  }

  /** A machine that comes, tells how it is, and goes. */
  async function registerWorkload(): Promise<void> {
    const config = { readinessProbe: { tcpSocket: { port: 8080 } } };
    const metadata = { AUTO_REGISTER_GROUP: "all", PROXY_CONFIG: config };
    const client = await connect(one, { ip: "10.9.0.1", name: "vm-1", serviceAccount: "vm", metadata });
    client.request(CLUSTER_TYPE);
    await client.take(CLUSTER_TYPE);
    const entries = (path: string) => one.kubectl(["get", "workloadentries", "-o", `jsonpath=${path}`]);
    await eventually("its entry", async () => (await entries("{.items[*].spec.address}")).includes("10.9.0.1"));
    client.request(HEALTH_TYPE);
    await eventually("its health", async () => (await entries("{.items[*].status}")).includes("Healthy"));
    client[Symbol.dispose]();
    await eventually("no entry", async () => !(await entries("{.items[*].spec.address}")).includes("10.9.0.1"));
  }

  async function readSecrets(server: ApiServer): Promise<void> {
    using client = await connect(server, { type: "router" });
    client.request(SECRET_TYPE, { subscribe: ["kubernetes://web"] });
    await client.take(SECRET_TYPE);
    await plane.logged(new RegExp(`may not read the secrets.*cluster=${server === one ? "Kubernetes" : "c2"}`));
  }
});

interface Variable {
  readonly name: string;
  readonly value?: string;
}

/** One verb of a rule. */
interface Grant {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** The only object; undefined for all. */
  readonly name: string | undefined;
  /** The only one in which it holds. */
  readonly namespace: string | undefined;
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** All that bindings give a user, each verb by itself. */
async function grants(server: ApiServer, user: string): Promise<readonly Grant[]> {
  const all = JSON.parse(await server.kubectl(["get", "-A", "-o", "json", ROLE_KINDS])).items as readonly RawObject[];
  const [, , namespace, name] = user.split(":");
  return all
    .filter(({ kind }) => kind?.endsWith("Binding"))
    .filter(({ subjects }) => at(subjects, name ?? "", "namespace") === namespace)
    .flatMap(({ roleRef, metadata: bound }) => {
      const role = all.find(
        ({ kind, metadata }) =>
          kind === at(roleRef, "kind") &&
          metadata.name === at(roleRef, "name") &&
          (kind === "ClusterRole" || metadata.namespace === bound.namespace),
      );
      return grantsOf((role?.rules ?? []) as readonly Rule[], bound.namespace);
    });
}

const ROLE_KINDS = "roles,clusterroles,rolebindings,clusterrolebindings";

function grantsOf(rules: readonly Rule[], namespace: string | undefined): readonly Grant[] {
  return rules.flatMap(({ apiGroups, resources, verbs, resourceNames = [undefined] }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.flatMap((verb) => resourceNames.map((name) => ({ verb, group, resource, name, namespace }))),
      ),
    ),
  );
}

function isUse(request: AuditedRequest, grant: Grant): boolean {
  return (
    request.verb === grant.verb &&
    request.group === grant.group &&
    request.resource === grant.resource &&
    (grant.name === undefined || request.name === grant.name) &&
    (grant.namespace === undefined || request.namespace === grant.namespace)
  );
}

function grantName({ verb, group, resource, name = "" }: Grant): string {
  return [verb, group === "" ? resource : `${resource}.${group}`, name].join(" ").trim();
}

function nameOf({ verb, group, resource, namespace = "", name = "" }: AuditedRequest): string {
  return `${verb} ${group}/${resource} ${namespace}/${name}`;
}

function mapIn(namespace: string, path: string, name = "istio-ca-root-cert"): readonly string[] {
  return ["-n", namespace, "get", "configmap", name, "-o", `jsonpath=${path}`];
}

function objectOf([type, spec]: readonly [string, object]): string {
  const [apiVersion, kind] = type.split(" ");
  return JSON.stringify({ apiVersion, kind, metadata: { name: "all", namespace: "default" }, spec });
}

/** A token of an account, for the API server unless somebody else is to believe it. */
async function tokenOf(
  server: ApiServer,
  account: string,
  { namespace = SYSTEM, audience = "" }: { readonly namespace?: string; readonly audience?: string } = {},
): Promise<string> {
  const asked = ["-n", namespace, "create", "token", account, ...(audience === "" ? [] : [`--audience=${audience}`])];
  return (await server.kubectl(asked)).trim();
}

/** Who is asked about rights hears of new roles and bindings a moment after they were written. */
async function untilMay(server: ApiServer, account: string, right: readonly string[]): Promise<void> {
  const as = ["auth", "can-i", "--as", `system:serviceaccount:${SYSTEM}:${account}`, ...right];
  await eventually(`rights of ${account}`, () =>
    server.kubectl(as).then(
      () => true,
      () => false,
    ),
  );
}
