/** Whatever the mesh and the proxies: a view's key tells everything its bytes depend on, and caches tell nothing more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseObject } from "#config/kinds/parse-object.ts";
import { meshConfigOf } from "#config/mesh/mesh-config.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { outboundCluster } from "#translate/names/names.ts";
import { planEndpoints, planGateway, planInbound, planNameTable, planOutbound } from "#translate/plan.ts";
import type { Recipe } from "#translate/recipes/recipe.ts";
import { viewsOf } from "#translate/views/views.ts";
import { encodeRecipe } from "../conformance/generate.ts";
import { proxyOf } from "../support/mesh.ts";
import { randomMesh } from "./random-mesh.ts";

/** Objects that look at what random meshes hardly do: labels of the proxy, where it is, what its DNS proxy gives out. */
const BY_PROXY = [
  {
    apiVersion: "networking.istio.io/v1",
    kind: "DestinationRule",
    metadata: { name: "of-web", namespace: "default" },
    spec: {
      host: "api.prod.svc.cluster.local",
      workloadSelector: { matchLabels: { app: "web" } },
      trafficPolicy: {
        outlierDetection: {},
        loadBalancer: { localityLbSetting: { failoverPriority: ["version", "topology.istio.io/network"] } },
      },
    },
  },
  {
    apiVersion: "networking.istio.io/v1",
    kind: "VirtualService",
    metadata: { name: "of-callers", namespace: "prod" },
    spec: {
      hosts: ["api"],
      http: [
        { match: [{ sourceNamespace: "prod" }, { sourceLabels: { app: "web" } }], redirect: { uri: "/moved" } },
        { route: [{ destination: { host: "api" } }] },
      ],
    },
  },
  ...["default", "prod"].map((namespace) => ({
    apiVersion: "security.istio.io/v1",
    kind: "PeerAuthentication",
    metadata: { name: "a-of-web", namespace },
    spec: { selector: { matchLabels: { app: "web" } }, mtls: { mode: "STRICT" } },
  })),
  {
    apiVersion: "networking.istio.io/v1",
    kind: "Sidecar",
    metadata: { name: "of-web", namespace: "default" },
    spec: {
      workloadSelector: { labels: { app: "web", version: "v1" } },
      egress: [{ port: { number: 80, protocol: "HTTP", name: "out" }, hosts: ["prod/*"] }, { hosts: ["./*"] }],
      ingress: [{ port: { number: 8080, protocol: "HTTP", name: "in" }, defaultEndpoint: "0.0.0.0:9090" }],
      inboundConnectionPool: { tcp: { maxConnections: 9 } },
      outboundTrafficPolicy: { mode: "REGISTRY_ONLY" },
    },
  },
  {
    apiVersion: "networking.istio.io/v1",
    kind: "Sidecar",
    metadata: { name: "of-all", namespace: "istio-system" },
    spec: { egress: [{ hosts: ["./*", "istio-system/*"] }] },
  },
  {
    apiVersion: "networking.istio.io/v1",
    kind: "ServiceEntry",
    metadata: { name: "without-address", namespace: "default" },
    spec: {
      hosts: ["without-address.example.com"],
      ports: [{ number: 443, name: "tls", protocol: "TLS" }],
      resolution: "DNS",
    },
  },
];

/** Smaller meshes are not searched for on failure: that takes minutes, and the key in the message tells enough. */
const RUNS = { numRuns: 8, endOnFailure: true };

/** A mesh as text, so that it can be built more than once, each time with caches of its own. */
interface MeshText {
  readonly objects: readonly object[];
  readonly mesh: object;
}

const meshText: fc.Arbitrary<MeshText> = fc.record({
  objects: randomMesh.map((objects) => [...objects, ...BY_PROXY]),
  mesh: fc.constantFrom(
    {},
    { enableTracing: false },
    { accessLogFile: "/dev/stdout", outboundTrafficPolicy: { mode: "REGISTRY_ONLY" } },
  ),
});

/** Objects that do not pass the checks are left out. */
function built({ objects, mesh }: MeshText): Snapshot {
  const config = meshConfigOf(mesh).value;
  assert.ok(config);
  const valid = objects.flatMap((object) => {
    const { object: parsed, problems } = parseObject(object, { file: "random.yaml", line: 1 });
    return parsed === undefined || problems.some(({ severity }) => severity === "error") ? [] : [parsed];
  });
  return buildSnapshot({ objects: valid, mesh: config, features: DEFAULT_FEATURES, previous: undefined });
}

type Options = Parameters<typeof proxyOf>[0] & { readonly addresses?: readonly string[] };
const connected = ({ addresses, ...options }: Options): MeshProxy => ({
  ...proxyOf(options),
  ...(addresses && { addresses }),
});

/** Everything a node may say, by the values that a proxy takes one of. */
const NODE: { readonly [Field in keyof Options]: readonly Options[Field][] } = {
  type: ["sidecar", "router"],
  namespace: ["default", "prod"],
  name: ["web-1", "web-2"],
  labels: [
    {},
    { app: "web", version: "v1" },
    { app: "web", version: "v2" },
    { app: "api", "service.istio.io/canonical-name": "api" },
    { istio: "ingressgateway" },
  ],
  serviceAccount: ["default", "web"],
  extensions: [[], ["istio.alpn"], ["envoy.filters.http.peer_metadata", "envoy.filters.network.metadata_exchange"]],
  envoyVersion: ["1.40.0", "1.37.0"],
};
const METADATA = {
  DNS_CAPTURE: ["true", "false"],
  HTTP10: ["1", "0"],
  IDLE_TIMEOUT: ["5s", "never"],
  INTERCEPTION_MODE: ["REDIRECT", "TPROXY", "NONE"],
  UNPRIVILEGED_POD: ["true", "false"],
  ENVOY_STATUS_PORT: [8080, 15021],
  NETWORK: ["", "n1"],
  HTTP_PROXY_PORT: ["15007", "0"],
  TLS_CLIENT_CERT_CHAIN: ["", "/etc/certs/cert.pem"],
  MESH_ID: ["mesh-1", "mesh-2"],
  CLUSTER_ID: ["Kubernetes", "east"],
  STATIC_LABELS: [{ version: "v9" }, { app: "web" }],
  INBOUND_LISTENER_EXACT_BALANCE: ["true", "false"],
  OUTBOUND_LISTENER_EXACT_BALANCE: ["true", "false"],
  PROXY_CONFIG: [
    {},
    { tracing: { sampling: 50, customTags: { zone: { literal: { value: "a" } } } } },
    { proxyHeaders: { preserveHttp1HeaderCase: true, server: { disabled: true } } },
    { gatewayTopology: { numTrustedProxies: 2 } },
  ],
  ORIGINAL_NAME: ["a", "b"],
};

/** Where workloads of the mesh are, and where none is. */
function placesIn({ objects }: MeshText): readonly (readonly string[])[] {
  const known = new Set(JSON.stringify(objects).match(/10\.9\.\d+\.\d+/g) ?? []);
  return [
    ["10.200.0.1"],
    ["fd00::1"],
    ["10.200.0.1", "fd00::1"],
    ...[...known].slice(0, 5).map((address) => [address]),
  ];
}

/** All proxies that differ from one in a single field. */
function flipped(one: Options, places: readonly (readonly string[])[]): Options[] {
  const changes: Options[] = Object.entries({ ...NODE, addresses: places }).flatMap(([field, values]) =>
    (values ?? []).map((value) => ({ [field]: value })),
  );
  const ofMetadata = Object.entries(METADATA).flatMap(([field, values]) =>
    values.map((value) => ({ metadata: { ...one.metadata, [field]: value } })),
  );
  return [...changes, ...ofMetadata].map((change) => ({ ...one, ...change }));
}

const oneOfEach = (fields: Readonly<Record<string, readonly unknown[] | undefined>>, requiredKeys?: []) =>
  fc.record(
    Object.fromEntries(Object.entries(fields).map(([field, values = []]) => [field, fc.constantFrom(...values)])),
    requiredKeys && { requiredKeys },
  );

/** A mesh, a proxy, and all that differ from it in one field. */
const similarProxies = meshText.chain((text) => {
  const places = placesIn(text);
  const options = fc.tuple(oneOfEach({ ...NODE, addresses: places }), oneOfEach(METADATA, []));
  return options.map(([fields, metadata]) => {
    const one: Options = { ...fields, metadata };
    return { text, proxy: connected(one), others: flipped(one, places).map(connected) };
  });
});

/** The bytes of every view of a proxy, by the view's key. */
function bytesByKey(snapshot: Snapshot, proxy: MeshProxy): Map<string, readonly string[]> {
  const { outbound, inbound, gateway, endpoints, names } = viewsOf(snapshot, proxy);
  const plans = [
    { key: outbound.key, plan: planOutbound(snapshot, outbound) },
    ...(inbound ? [{ key: inbound.key, plan: planInbound(snapshot, inbound) }] : []),
    ...(gateway ? [{ key: gateway.key, plan: planGateway(snapshot, gateway) }] : []),
  ];
  const clusters = snapshot.services.flatMap(({ hostname, ports }) =>
    ports.flatMap(({ port }) => ["", "v1"].map((subset) => outboundCluster(hostname, port, subset))),
  );
  return new Map([
    ...plans.map(({ key, plan }) => [key, [...plan.clusters, ...plan.listeners, ...plan.routes].map(text)] as const),
    [endpoints.key, clusters.flatMap((name) => planEndpoints(snapshot, endpoints, name) ?? []).map(text)],
    [names.key, [text(planNameTable(snapshot, names))]],
  ]);
}

function text(recipe: Recipe): string {
  return `${recipe.name} ${Buffer.from(encodeRecipe(recipe)).toString("base64")}`;
}

test("proxies whose views have one key get the same bytes", () => {
  fc.assert(
    fc.property(similarProxies, ({ text, proxy, others }) => {
      const known = bytesByKey(built(text), proxy);
      for (const other of others) {
        for (const [key, bytes] of bytesByKey(built(text), other))
          assert.deepEqual(bytes, known.get(key) ?? bytes, key);
      }
    }),
    RUNS,
  );
});

test("what was planned for some proxies does not change what the next one gets", () => {
  fc.assert(
    fc.property(similarProxies, ({ text, proxy, others }) => {
      const shared = built(text);
      for (const other of others) bytesByKey(shared, other);
      assert.deepEqual(bytesByKey(shared, proxy), bytesByKey(built(text), proxy));
    }),
    RUNS,
  );
});
