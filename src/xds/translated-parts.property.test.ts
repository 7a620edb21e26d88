/** Whatever the mesh, and whatever it was before: what is cached equals what is translated from nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Slices } from "#lib/async/slices.ts";
import { SILENT } from "#lib/log/log.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
} from "#protocol/messages/type-urls.ts";
import { meshOf, proxyOf } from "../../test/support/mesh.ts";
import { Catalogue } from "./parts/catalogue.ts";
import type { ProxyParts } from "./parts/parts.ts";
import { translatedParts } from "./parts/translated-parts.ts";

/** One object in several states; each mesh takes one of them, or none. */
const OBJECTS: readonly (readonly string[])[] = [
  ["10.2.0.1", "10.2.0.2"].map(
    (
      ip,
    ) => `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: a, namespace: default}, spec: {hosts: [a.default.svc.cluster.local],
addresses: [10.96.0.1], ports: [{number: 80, name: http, protocol: HTTP}, {number: 90, name: tcp, protocol: TCP}], resolution: STATIC, location: MESH_INTERNAL,
endpoints: [{address: ${ip}, labels: {app: a, version: v1}, serviceAccount: a}, {address: 10.0.0.1, labels: {app: a, version: v2}}]}}`,
  ),
  ["DNS", "STATIC"].map(
    (
      resolution,
    ) => `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: ext, namespace: other}, spec: {hosts: [ext.example.com],
ports: [{number: 80, name: http, protocol: HTTP}, {number: 443, name: tls, protocol: TLS}], resolution: ${resolution}, endpoints: [{address: 1.2.3.4}]}}`,
  ),
  ["5s", "6s"].map(
    (
      timeout,
    ) => `{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: a, namespace: default}, spec: {hosts: [a], http: [
{match: [{sourceLabels: {app: web}}], route: [{destination: {host: a, subset: v2}}]}, {timeout: ${timeout}, route: [{destination: {host: a}}]}]}}`,
  ),
  ["ROUND_ROBIN", "RANDOM"].map(
    (
      simple,
    ) => `{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: a, namespace: default}, spec: {host: a,
trafficPolicy: {loadBalancer: {simple: ${simple}}}, subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]}}`,
  ),
  [
    `{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: web, namespace: default}, spec: {host: ext.example.com,
workloadSelector: {matchLabels: {app: web}}, trafficPolicy: {tls: {mode: SIMPLE}}}}`,
  ],
  ["STRICT", "DISABLE", "PERMISSIVE"].map(
    (mode) =>
      `{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: web, namespace: default}, spec: {selector: {matchLabels: {app: web}}, mtls: {mode: ${mode}}}}`,
  ),
  ["STRICT", "PERMISSIVE"].map(
    (mode) =>
      `{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: default, namespace: istio-system}, spec: {mtls: {mode: ${mode}}}}`,
  ),
  ["*", "a.example.com"].map(
    (host) =>
      `{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: gw, namespace: default}, spec: {selector: {app: gw}, servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ["${host}"]}]}}`,
  ),
  [
    `{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: gw, namespace: default}, spec: {hosts: [a.example.com], gateways: [gw], http: [{route: [{destination: {host: a}}]}]}}`,
  ],
  ["None", "10.96.0.7"].map(
    (clusterIP) =>
      `{apiVersion: v1, kind: Service, metadata: {name: db, namespace: default}, spec: {clusterIP: "${clusterIP}", selector: {app: db}, ports: [{name: tcp, port: 3306}]}}`,
  ),
  ["10.0.0.2", "10.0.0.9"].map(
    (address) =>
      `{apiVersion: networking.istio.io/v1, kind: WorkloadEntry, metadata: {name: db, namespace: default}, spec: {address: ${address}, labels: {app: db}, serviceAccount: db}}`,
  ),
  ["MERGE", "REMOVE"].map(
    (
      operation,
    ) => `{apiVersion: networking.istio.io/v1alpha3, kind: EnvoyFilter, metadata: {name: web, namespace: default}, spec: {workloadSelector: {labels: {app: web}}, configPatches: [
{applyTo: CLUSTER, match: {cluster: {portNumber: 80}}, patch: {operation: ${operation}, value: {connect_timeout: 3s}}},
{applyTo: VIRTUAL_HOST, match: {context: SIDECAR_OUTBOUND}, patch: {operation: ${operation}, value: {request_headers_to_remove: [x]}}}]}}`,
  ),
  ["1s", "2s"].map(
    (
      timeout,
    ) => `{apiVersion: networking.istio.io/v1alpha3, kind: EnvoyFilter, metadata: {name: all, namespace: istio-system}, spec: {configPatches: [
{applyTo: FILTER_CHAIN, match: {proxy: {metadata: {HTTP10: "1"}}}, patch: {operation: MERGE, value: {transport_socket_connect_timeout: ${timeout}}}},
{applyTo: HTTP_ROUTE, match: {context: GATEWAY}, patch: {operation: MERGE, value: {route: {timeout: ${timeout}}}}}]}}`,
  ),
  [".", "*", "other"].map(
    (
      exportTo,
    ) => `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: own, namespace: default}, spec: {hosts: [own.example.com],
exportTo: ["${exportTo}"], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.2.0.9}]}}`,
  ),
  ["ALLOW", "DENY"].map(
    (action) =>
      `{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {name: web, namespace: default}, spec: {selector: {matchLabels: {app: web}}, action: ${action}, rules: [{}]}}`,
  ),
];
const PROXIES: readonly MeshProxy[] = [
  proxyOf({ ip: "10.0.0.1", name: "a-1", labels: { app: "a" } }),
  proxyOf({ ip: "10.0.0.2", name: "db-1", labels: { app: "db" } }),
  proxyOf({ ip: "10.0.0.3", name: "web-1", labels: { app: "web" } }),
  proxyOf({ ip: "10.0.0.4", name: "web-2", labels: { app: "web" } }),
  proxyOf({ ip: "10.0.0.5", name: "far-1", namespace: "other" }),
  proxyOf({ ip: "10.0.0.6", name: "gw-1", type: "router", labels: { app: "gw" } }),
  proxyOf({ ip: "10.0.0.8", name: "old-1", metadata: { HTTP10: "1", IDLE_TIMEOUT: "5s" } }),
  proxyOf({ ip: "10.0.0.7", name: "dns-1", metadata: { DNS_CAPTURE: "true", DNS_AUTO_ALLOCATE: "true" } }),
];
/** As they are served where they prove no identity. */
const UNPROVEN = PROXIES.map((proxy): MeshProxy => ({ ...proxy, isUnproven: true }));
const MESH_CONFIGS = [
  {},
  { accessLogFile: "/dev/stdout" },
  { outboundTrafficPolicy: { mode: "REGISTRY_ONLY" } },
  { defaultServiceExportTo: ["."] },
];
const TYPES = [CLUSTER_TYPE, LISTENER_TYPE, ROUTE_TYPE, NAME_TABLE_TYPE];
const step = fc.record({
  objects: fc.tuple(...OBJECTS.map((states) => fc.option(fc.constantFrom(...states), { nil: "" }))),
  mesh: fc.constantFrom(...MESH_CONFIGS),
});
const yamlOf = (objects: readonly string[]) => objects.filter((text) => text !== "").join("\n---\n");

const newCatalogue = () => new Catalogue(new Slices(() => 0, 1), SILENT);

/** All resources of the parts, as `type part name` and bytes. */
async function resourcesOf(catalogue: Catalogue, parts: ProxyParts, at: { version: number; snapshot: Snapshot }) {
  const found = new Map<string, string>();
  const add = (key: string, bytes: Uint8Array) => found.set(key, Buffer.from(bytes).toString("base64"));
  const clusters: string[] = [];
  for (const typeUrl of TYPES) {
    const layers = await catalogue.layers(parts, typeUrl, { ...at, names: new Set() });
    for (const [index, layer] of layers.entries()) {
      const part = parts.types.get(typeUrl)?.[index]?.key;
      for (const name of layer.keys()) {
        add(`${typeUrl} ${part} ${name}`, layer.get(name)?.value ?? new Uint8Array());
        if (typeUrl === CLUSTER_TYPE) clusters.push(name);
      }
    }
  }
  const [endpoints] = await catalogue.layers(parts, ENDPOINT_TYPE, { ...at, names: new Set(clusters) });
  for (const name of clusters) {
    const value = endpoints?.get(name)?.value;
    if (value !== undefined) add(`${ENDPOINT_TYPE} ${parts.asked.get(ENDPOINT_TYPE)?.key} ${name}`, value);
  }
  return found;
}

async function fromNothing(snapshot: Snapshot, proxy: MeshProxy): Promise<Map<string, string>> {
  const catalogue = newCatalogue();
  const parts = translatedParts(snapshot, proxy);
  catalogue.use(parts, undefined);
  return resourcesOf(catalogue, parts, { version: 1, snapshot });
}

test("proxies that share caches over many changes get the bytes of a translation without caches", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 4 }), async (steps) => {
      const catalogue = newCatalogue();
      const held = new Map<MeshProxy, ProxyParts>();
      let previous: Snapshot | undefined;
      for (const [version, { objects, mesh }] of steps.entries()) {
        const yaml = yamlOf(objects);
        const snapshot: Snapshot = meshOf(yaml, { mesh, ...(previous && { previous }) });
        previous = snapshot;
        /** By part and name: proxies with the same part have the same resources. */
        const byKey = new Map<string, string>();
        for (const proxy of [...PROXIES, ...UNPROVEN]) {
          const parts = translatedParts(snapshot, proxy);
          catalogue.use(parts, held.get(proxy));
          held.set(proxy, parts);
          const cached = await resourcesOf(catalogue, parts, { version, snapshot });
          const fresh = await fromNothing(meshOf(yaml, { mesh }), proxy);
          assert.deepEqual(cached, fresh, proxy.id);
          for (const [key, bytes] of fresh) {
            assert.equal(byKey.get(key) ?? bytes, bytes, `${proxy.id}: ${key} differs between proxies`);
            byKey.set(key, bytes);
          }
        }
      }
      for (const parts of held.values()) catalogue.use(undefined, parts);
      assert.deepEqual(catalogue.size, { parts: 0, resources: 0 });
    }),
    { numRuns: 15 },
  );
});
