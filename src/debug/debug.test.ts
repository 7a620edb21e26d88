import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fastify, { type FastifyInstance } from "fastify";
import type { Authentication, Credentials } from "#authn/authenticator.ts";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { SILENT } from "#lib/log/log.ts";
import { Metrics } from "#lib/metrics/metrics.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { ConnectedProxy } from "#model/ports.ts";
import type { ChangeRecord, PushRecord } from "#model/push-record.ts";
import type { Endpoint } from "#model/service/endpoint.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { debugAnswer } from "./answer.ts";
import type { DebugState } from "./pages/page.ts";
import { DEBUG_PAGES } from "./pages/pages.ts";
import { Readiness } from "./readiness.ts";
import { addDebugRoutes, addMetricsRoute, addReadyRoute, addVersionRoute, answerOf } from "./routes.ts";

function service(name: string, namespace: string): Service {
  return {
    hostname: `${name}.${namespace}.svc.cluster.local`,
    name,
    namespace,
    registry: "External",
    addresses: ["10.96.0.10"],
    autoAddress: undefined,
    ports: [{ name: "http", port: 8000, protocol: "HTTP" }],
    resolution: "static",
    meshExternal: false,
    headless: false,
    labels: {},
    exportTo: [],
    subjectAltNames: [],
    createdAt: 0,
  };
}

const ENDPOINT: Endpoint = {
  address: "127.0.0.1",
  ports: { http: 8080 },
  labels: { app: "httpbin" },
  namespace: "default",
  workloadName: "",
  serviceAccount: "httpbin",
  tlsMode: "istio",
  network: "",
  locality: "",
  clusterId: "Kubernetes",
  weight: 0,
  health: "healthy",
};

const SNAPSHOT: Snapshot = {
  version: 1,
  mesh: DEFAULT_MESH_CONFIG,
  features: DEFAULT_FEATURES,
  unreadablePolicies: [],
  networkGateways: [],
  namedGateways: [],
  clusterSecrets: [],
  namespaces: [],
  proxyConfigs: [],
  workloadGroups: [],
  services: [service("httpbin", "default"), service("other", "elsewhere")],
  workloads: new Map(),
  endpoints: new Map([
    [
      "default/httpbin.default.svc.cluster.local",
      { endpoints: [ENDPOINT], identities: ["spiffe://cluster.local/ns/default/sa/httpbin"] },
    ],
  ]),
  virtualServices: [],
  destinationRules: [],
  gateways: [],
  sidecars: [],
  peerAuthentications: [],
  authorizationPolicies: [],
  envoyFilters: [],
  requestAuthentications: [],
  secrets: [],
  configMaps: [],
  keySets: new Map(),
};

function object(kind: string, name: string, namespace: string, spec: object): ConfigObject {
  return { kind, metadata: { name, namespace, labels: {}, annotations: {}, createdAt: 0 }, spec, origin: undefined };
}

const OBJECTS: readonly ConfigObject[] = [
  {
    kind: "VirtualService",
    metadata: { name: "b", namespace: "default", labels: {}, annotations: {}, createdAt: 1_700_000_000_000 },
    spec: { http: [{ timeout: 1500, retries: { attempts: 3, perTryTimeout: 2000 } }] },
    origin: undefined,
  },
  object("PeerAuthentication", "a", "elsewhere", { mtls: { mode: "STRICT" } }),
];

const CLUSTERS = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const NAMES = "type.googleapis.com/istio.networking.nds.v1.NameTable";
const SECRETS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
const RESOURCES: ReadonlyMap<string, [string, Buffer][]> = new Map([
  [CLUSTERS, [["a", Buffer.from("\n\u0001a")]]],
  [SECRETS, [["key", Buffer.from("\n\u0003key")]]],
]);
const PROXIES: readonly ConnectedProxy[] = [
  {
    connectionId: "httpbin-1.default-1",
    nodeId: "sidecar~10.0.0.1~httpbin-1.default~default.svc.cluster.local",
    connectedAt: 0,
    address: "10.0.0.1:4000",
    proxy: { ...proxyOf({ name: "httpbin-1", ip: "127.0.0.1" }), locality: "r1/z1/s1" },
    istioVersion: "1.29.6",
    resources: (typeUrl) => RESOURCES.get(typeUrl) ?? [],
    types: new Map([
      [CLUSTERS, { sent: "2", acknowledged: "1", rejected: "duplicate cluster", sentAt: 0 }],
      [NAMES, { sent: "1", acknowledged: "", rejected: "" }],
    ]),
  },
];

const CHANGES: readonly ChangeRecord[] = [
  {
    id: 1,
    changedAt: 10,
    releasedAt: 20,
    objects: ["~ VirtualService/default/b", "+ Service/elsewhere/c"],
    objectCount: 2,
  },
];
const PUSH = { at: 30, type: "rds", view: "abc", resources: 1, removed: 0, bytes: 100, result: "sent" } as const;
const PUSHES: readonly PushRecord[] = [
  { ...PUSH, change: 0, node: "sidecar~10.0.0.1~httpbin-1.default~d" },
  { ...PUSH, change: 1, node: "sidecar~10.0.0.1~httpbin-1.default~d", result: "acknowledged", answeredAfter: 6.8 },
  { ...PUSH, change: 1, node: "sidecar~10.0.0.2~other-1.elsewhere~d" },
];

/** Believes a token that is the name of a namespace. */
async function authenticate({ authorization }: Credentials): Promise<Authentication> {
  if (authorization === undefined) return { refused: "no bearer token" };
  const namespace = authorization.replace("Bearer ", "");
  return {
    caller: {
      identity: `spiffe://cluster.local/ns/${namespace}/sa/a`,
      namespace,
      serviceAccount: "a",
      provedBy: "jwt",
    },
  };
}

const STATE: DebugState = {
  source: { current: () => SNAPSHOT, objects: () => OBJECTS },
  connections: () => PROXIES,
  pushes: { changes: () => CHANGES, pushes: () => PUSHES },
  held: () => ({ parts: 2, resources: 7 }),
};

function server(): FastifyInstance {
  const app = fastify();
  addDebugRoutes(app, {
    ...STATE,
    authenticate,
    seesAll: (namespace: string) => namespace === "istio-system",
    log: SILENT,
  });
  return app;
}

async function get(
  url: string,
  remoteAddress = "127.0.0.1",
  token?: string,
): Promise<{ status: number; body: string }> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const { statusCode, body } = await server().inject({ url, remoteAddress, headers });
  return { status: statusCode, body };
}

async function json(url: string): Promise<unknown> {
  return JSON.parse((await get(url)).body);
}

test("a push is asked for, and a proxy sent away, by their pages", async () => {
  const did: string[] = [];
  const state: DebugState = {
    source: { current: () => SNAPSHOT, objects: () => OBJECTS },
    connections: () => PROXIES.map((proxy) => ({ ...proxy, disconnect: () => did.push(proxy.proxy.id) })),
    pushes: { changes: () => [], pushes: () => [] },
    push: () => did.push("push"),
    held: () => ({ parts: 0, resources: 0 }),
  };
  const ask = (name: string, query: Record<string, string>, scope?: string) => {
    const page = DEBUG_PAGES.find(({ path }) => path === `/debug/${name}`);
    assert.ok(page);
    return answerOf(page, state, { scope, query });
  };
  assert.match(ask("adsz", { push: "true" }).body, /^Pushed to \d+ servers\n$/);
  assert.equal(ask("adsz", { push: "true" }, "default").status, 403);
  assert.equal(ask("force_disconnect", { proxyID: "httpbin-1.default" }).body, "OK");
  assert.equal(ask("force_disconnect", { proxyID: "httpbin-1.default" }, "elsewhere").status, 404);
  assert.deepEqual(did, ["push", "httpbin-1.default"]);
});

test("/debug lists the pages as HTML with links", async () => {
  const { body } = await get("/debug");
  assert.match(body, /^<!doctype html>/);
  for (const page of ["configz", "endpointz", "registryz", "syncz"])
    assert.ok(body.includes(`href="/debug/${page}?pretty"`));
});

test("/debug/registryz shows services in Istio's shape", async () => {
  const [first] = (await json("/debug/registryz")) as [Record<string, unknown>];
  assert.deepEqual(first, {
    Attributes: {
      ServiceRegistry: "External",
      Name: "httpbin",
      Namespace: "default",
      Labels: null,
      ExportTo: null,
      LabelSelectors: null,
      Aliases: null,
      ClusterExternalAddresses: null,
      ClusterExternalPorts: null,
      PassthroughTargetPorts: null,
      Type: "",
      ExternalName: "",
      NodeLocal: false,
      TrafficDistribution: 0,
      ObjectName: "httpbin",
      PublishNotReadyAddresses: false,
    },
    ports: [{ name: "http", port: 8000, protocol: "HTTP" }],
    creationTime: "0001-01-01T00:00:00Z",
    hostname: "httpbin.default.svc.cluster.local",
    clusterVIPs: { Addresses: null },
    defaultAddress: "10.96.0.10",
    Resolution: 0,
    MeshExternal: false,
    ResourceVersion: "",
  });
});

test("/debug/endpointz shows endpoints by host, namespace and registry", async () => {
  const identity = "spiffe://cluster.local/ns/default/sa/httpbin";
  assert.deepEqual(await json("/debug/endpointz"), {
    "httpbin.default.svc.cluster.local": {
      default: {
        Shards: {
          "External/Kubernetes": [
            {
              Labels: { app: "httpbin" },
              Addresses: ["127.0.0.1"],
              ServicePortName: "http",
              LegacyClusterPortKey: 8000,
              ServiceAccount: identity,
              Network: "",
              Locality: { Label: "", ClusterID: "Kubernetes" },
              EndpointPort: 8080,
              LbWeight: 0,
              TLSMode: "istio",
              Namespace: "default",
              WorkloadName: "",
              HostName: "",
              SubDomain: "",
              HealthStatus: 1,
              SendUnhealthyEndpoints: false,
              NodeName: "",
            },
          ],
        },
        ServiceAccounts: { [identity]: {} },
      },
    },
  });
});

test("/debug/configz shows objects in the form of the API, with durations as text", async () => {
  assert.deepEqual(await json("/debug/configz"), [
    {
      kind: "PeerAuthentication",
      apiVersion: "security.istio.io/v1",
      metadata: { name: "a", namespace: "elsewhere" },
      spec: { mtls: { mode: "STRICT" } },
    },
    {
      kind: "VirtualService",
      apiVersion: "networking.istio.io/v1",
      metadata: { name: "b", namespace: "default", creationTimestamp: "2023-11-14T22:13:20Z" },
      spec: { http: [{ timeout: "1.500s", retries: { attempts: 3, perTryTimeout: "2s" } }] },
    },
  ]);
});

test("/debug/syncz shows what was sent, acknowledged and rejected", async () => {
  assert.deepEqual(await json("/debug/syncz"), [
    {
      cluster_id: "Kubernetes",
      proxy: "httpbin-1.default",
      proxy_type: "sidecar",
      istio_version: "1.29.6",
      cluster_sent: "2",
      cluster_acked: "1",
      resources: {
        [CLUSTERS]: { sent: "2", acked: "1", lastError: "duplicate cluster", sentTime: "1970-01-01T00:00:00.000Z" },
        [NAMES]: { sent: "1" },
      },
    },
  ]);
});

test("?pretty indents a page", async () => {
  assert.match((await get("/debug/syncz?pretty")).body, /^\[\n {2}\{\n {4}"cluster_id"/);
});

describe("a debug page beyond loopback", () => {
  const ELSEWHERE = "192.0.2.7";

  for (const address of ["127.0.0.1", "127.5.5.5", "::1", "::ffff:127.0.0.1"]) {
    test(`is open to ${address}`, async () => assert.equal((await get("/debug/syncz", address)).status, 200));
  }

  for (const address of [ELSEWHERE, "::ffff:192.0.2.7", "fe80::1", "2001:db8::1"]) {
    test(`is closed to ${address} without a token`, async () => {
      assert.deepEqual(await get("/debug/configz", address), { status: 401, body: "no bearer token\n" });
    });
  }

  const PAGES: Readonly<Record<string, RegExp>> = {
    "/debug/registryz": /other\.elsewhere/,
    "/debug/configz": /PeerAuthentication/,
  };
  for (const [path, foreign] of Object.entries(PAGES)) {
    test(`${path} has only what is of the namespace that it is asked for`, () => {
      const page = DEBUG_PAGES.find((one) => one.path === path);
      assert.ok(page);
      const of = (scope: string) => answerOf(page, STATE, { scope, query: {} }).body;
      assert.doesNotMatch(of("default"), foreign);
      assert.match(of("default"), /default/);
      assert.match(of("elsewhere"), foreign);
    });
  }

  test("is refused to callers of another namespace than the root one, unless it is about proxies of their own (CVE-2026-31838)", async () => {
    for (const { path } of DEBUG_PAGES.concat({ path: "/debug", help: "", content: () => "" })) {
      const isForAll = ["/debug/config_dump", "/debug/edsz", "/debug/ndsz"].includes(path);
      const answer = await get(`${path}?proxyID=httpbin-1.default`, ELSEWHERE, "default");
      assert.equal(answer.status, isForAll ? 200 : 403, `${path}: ${answer.body}`);
      if (isForAll) assert.equal((await get(`${path}?proxyID=httpbin-1.default`, ELSEWHERE, "elsewhere")).status, 404);
    }
    assert.deepEqual(await get("/debug/syncz", ELSEWHERE, "default"), {
      status: 403,
      body: '/debug/syncz is not for callers of namespace "default"\n',
    });
    assert.equal((await get("/debug", ELSEWHERE)).status, 401);
  });

  test("asks browsers and proxies on this machine for an identity, too", async () => {
    const foreign = [
      { host: "rebound.example" },
      { origin: "https://page.example" },
      { "x-forwarded-for": "10.0.0.1" },
    ];
    for (const headers of foreign) {
      const { statusCode } = await server().inject({ url: "/debug/syncz", remoteAddress: "127.0.0.1", headers });
      assert.equal(statusCode, 401, JSON.stringify(headers));
    }
  });

  test("shows everything to the root namespace", async () => {
    assert.equal((await get("/debug/configz", ELSEWHERE, "istio-system")).body, (await get("/debug/configz")).body);
  });
});

test("/ready says what it waits for until nothing is left", async () => {
  const readiness = new Readiness();
  const app = fastify();
  addReadyRoute(app, readiness);
  const first = readiness.block("first snapshot");
  const second = readiness.block("CA");
  const ask = async () => {
    const { statusCode, body } = await app.inject("/ready");
    return `${statusCode} ${body}`;
  };
  assert.equal(await ask(), "503 waiting for first snapshot, CA\n");
  first[Symbol.dispose]();
  assert.equal(await ask(), "503 waiting for CA\n");
  second[Symbol.dispose]();
  assert.equal(await ask(), "200 ok\n");
});

test("/metrics may be for programs of the same machine only", async () => {
  const app = fastify();
  addMetricsRoute(app, new Metrics({}), true);
  const seen = async (remoteAddress: string) => (await app.inject({ url: "/metrics", remoteAddress })).statusCode;
  assert.deepEqual([await seen("127.0.0.1"), await seen("::1"), await seen("10.0.0.1")], [200, 200, 403]);
});

test("/version answers with the version alone", async () => {
  const app = fastify();
  addVersionRoute(app, "1.2.3");
  assert.equal((await app.inject("/version")).body, "1.2.3");
});

test("/debug/list names every page", async () => {
  const listed = await json("/debug/list");
  assert.ok(Array.isArray(listed));
  for (const name of ["adsz", "config_dump", "list", "mesh", "pushes", "syncz"]) assert.ok(listed.includes(name), name);
  for (const name of listed) assert.ok([200, 400].includes((await get(`/debug/${name}`)).status), name);
});

test("/debug/adsz shows proxies with what they watch, /debug/connections without", async () => {
  const client = {
    connectionId: "httpbin-1.default-1",
    connectedAt: "1970-01-01T00:00:00.000Z",
    address: "10.0.0.1:4000",
  };
  assert.deepEqual(await json("/debug/connections"), { totalClients: 1, clients: [client] });
  const { clients } = Object(await json("/debug/adsz"));
  assert.deepEqual(clients[0].watches, { [CLUSTERS]: ["a"], [NAMES]: [] });
  assert.equal(clients[0].metadata.NAMESPACE, "default");
});

test("/debug/config_dump shows what one proxy was sent", async () => {
  const { configs } = Object(await json("/debug/config_dump?proxyID=httpbin-1.default"));
  assert.deepEqual(configs[1].dynamicActiveClusters, [{ cluster: { "@type": CLUSTERS, name: "a" } }]);
  assert.equal((await get("/debug/config_dump")).status, 400);
  assert.equal((await get("/debug/config_dump?proxyID=nobody.default")).status, 404);
  assert.equal((await get("/debug/config_dump?proxyID=httpbin-1.default", "192.0.2.7", "elsewhere")).status, 404);
});

test("/debug/config_dump?types= shows resources of these types alone, without the content of secrets", async () => {
  const { configs } = Object(await json("/debug/config_dump?proxyID=httpbin-1.default&types=CDS,nds,sds"));
  assert.deepEqual(configs, [
    { "@type": CLUSTERS, name: "a" },
    { "@type": SECRETS, name: "key" },
  ]);
});

test("/debug/config_dump?include_eds has endpoints behind clusters", async () => {
  const typesOf = async (query: string) => {
    const { configs } = Object(await json(`/debug/config_dump?proxyID=httpbin-1.default${query}`));
    return configs.slice(1, 3).map((one: { "@type": string }) => one["@type"].split(".").at(-1));
  };
  assert.deepEqual(await typesOf("&include_eds"), ["ClustersConfigDump", "EndpointsConfigDump"]);
  assert.deepEqual(await typesOf(""), ["ClustersConfigDump", "ListenersConfigDump"]);
});

test("/debug/adsz?proxyID= shows one proxy, with the labels of where it is", async () => {
  const { clients } = Object(await json("/debug/adsz?proxyID=httpbin-1.default"));
  assert.equal(clients.length, 1);
  assert.equal(clients[0].labels["topology.kubernetes.io/zone"], "z1");
  assert.deepEqual(clients[0].locality, { region: "r1", zone: "z1", sub_zone: "s1" });
  assert.equal((await get("/debug/adsz?proxyID=nobody.default")).status, 404);
});

test("/debug/syncz?namespace= shows the proxies of that namespace", async () => {
  assert.equal(Object(await json("/debug/syncz?namespace=default")).length, 1);
  assert.deepEqual(await json("/debug/syncz?namespace=elsewhere"), []);
});

test("/debug/instancesz shows the services of each proxy, /debug/sidecarz what it may see", async () => {
  const instances = Object(await json("/debug/instancesz"));
  assert.equal(instances["httpbin-1.default"][0].Port.TargetPort, 8080);
  const scope = Object(await json("/debug/sidecarz?proxyID=httpbin-1.default"));
  const names = (services: readonly { readonly hostname: string }[]) => services.map(({ hostname }) => hostname);
  const host = "httpbin.default.svc.cluster.local";
  assert.ok(names(scope.services).includes(host));
  assert.deepEqual(scope.egressListenerServices.map(names), [names(scope.services)], "one listener for all");
  assert.deepEqual(Object.keys(scope.servicesByHostname), names(scope.services));
  const { name, namespace, sidecar, outboundTrafficPolicy } = scope;
  assert.deepEqual([name, namespace, sidecar], ["default-sidecar", "default", null]);
  assert.deepEqual(outboundTrafficPolicy, { mode: "ALLOW_ANY" });
});

test("/debug/pushes joins changes with what was sent, for the namespace of the caller", async () => {
  const { changes } = Object(await json("/debug/pushes"));
  assert.deepEqual(
    changes.map(({ id, proxies, views, bytes }: Record<string, unknown>) => [id, proxies, views, bytes]),
    [
      [0, 1, 1, 100],
      [1, 2, 1, 200],
    ],
  );
  const [, { changedAt, releasedAt, pushes: sent }] = changes;
  assert.deepEqual([changedAt, releasedAt], ["1970-01-01T00:00:00.010Z", "1970-01-01T00:00:00.020Z"]);
  assert.deepEqual([sent[0].at, sent[0].answeredAfterMs], ["1970-01-01T00:00:00.030Z", 7]);
  const page = DEBUG_PAGES.find(({ path }) => path === "/debug/pushes");
  const ofNamespace = page && answerOf(page, STATE, { scope: "default", query: { change: "1" } }).body;
  const mine = Object(JSON.parse(ofNamespace ?? "")).changes;
  assert.deepEqual([mine.length, mine[0].proxies, mine[0].objects], [1, 1, ["~ VirtualService/default/b"]]);
});

test("debugAnswer() gives everything to the root namespace, and to others what is about their own proxies", () => {
  const state = {
    source: { current: () => SNAPSHOT, objects: () => OBJECTS },
    connections: () => PROXIES,
    pushes: { changes: () => [], pushes: () => [] },
    held: () => ({ parts: 0, resources: 0 }),
    seesAll: (namespace: string) => namespace === "istio-system",
  };
  const ask = (page: string, namespace: string) =>
    debugAnswer(page, { identity: "me", namespace, serviceAccount: "a", provedBy: "jwt" }, state);
  const bodyOf = (answer: ReturnType<typeof ask>) => ("body" in answer ? answer.body : answer.refused);
  assert.match(bodyOf(ask("syncz", "istio-system")), /httpbin-1\.default/);
  assert.match(bodyOf(ask("syncz", "default")), /is not for me/);
  assert.match(bodyOf(ask("config_dump?proxyID=httpbin-1.default", "default")), /ClustersConfigDump/);
  assert.match(bodyOf(ask("config_dump?proxyID=httpbin-1.default", "elsewhere")), /not connected/);
  assert.match(bodyOf(ask("nonsense", "istio-system")), /no debug page/);
});

const IDLE: DebugState = {
  source: { current: () => SNAPSHOT, objects: () => [] },
  connections: () => [],
  pushes: { changes: () => [], pushes: () => [] },
  held: () => ({ parts: 0, resources: 0 }),
};

test("push_status shows what objects claim of one another, to those who own them", () => {
  const conflict = {
    metric: "pilot_vservice_dup_domain" as const,
    what: 'host "a" for sidecars',
    winner: "VirtualService/x/one",
    loser: "VirtualService/x/two",
    loserNamespace: "x",
    outcome: "not used",
  };
  const state: DebugState = { ...IDLE, conflicts: () => [conflict, { ...conflict, what: 'host "b"' }] };
  const page = DEBUG_PAGES.find(({ path }) => path === "/debug/push_status");
  const shown = (scope: string | undefined) => page?.content(state, { scope, query: {} });
  const message =
    'VirtualService/x/two: host "a" for sidecars is taken by VirtualService/x/one: not used; VirtualService/x/two: host "b" is taken by VirtualService/x/one: not used';
  assert.deepEqual(shown(undefined), { pilot_vservice_dup_domain: { "VirtualService/x/two": { message } } });
  assert.deepEqual(shown("other"), {});
});

test("networkz lists gateways between networks in Istio's shape", () => {
  const gateway = { network: "n1", clusterId: "c1", address: "1.2.3.4", port: 15443 };
  const current = () => ({ ...SNAPSHOT, networkGateways: [gateway] });
  const page = DEBUG_PAGES.find(({ path }) => path === "/debug/networkz");
  const state: DebugState = { ...IDLE, source: { current, objects: () => [] } };
  assert.deepEqual(page?.content(state, { scope: undefined, query: {} }), [
    {
      Network: "n1",
      Cluster: "c1",
      Addr: "1.2.3.4",
      Port: 15443,
      HBONEPort: 0,
      ServiceAccount: { Namespace: "", Name: "" },
    },
  ]);
});
