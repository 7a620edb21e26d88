/** Whatever the configuration was before: a snapshot that follows another equals one that is made from nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { meshConfigOf } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { objectsOf } from "../../test/support/mesh.ts";
import { object, service, workload } from "../../test/support/objects.ts";
import { buildSnapshot } from "./snapshot.ts";

const route = (host: string) => ({ route: [{ destination: { host } }] });
const leaf = (timeout: string) => ({ http: [{ timeout, route: [{ destination: { host: "a" } }] }] });
const delegate = (name: string) => ({ delegate: { name, namespace: "default" } });
const OUTSIDE = {
  hosts: ["s.example"],
  addresses: ["10.96.0.2"],
  ports: [{ number: 80, name: "http", protocol: "HTTP" }],
  resolution: "STATIC",
};

function json(apiVersion: string, kind: string, rest: object): string {
  return `---\n${JSON.stringify({ apiVersion, kind, ...rest })}\n`;
}

function kubernetesService(name: string, clusterIP: string, selector: object): string {
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  return json("v1", "Service", { metadata: { name, namespace: "default" }, spec: { clusterIP, selector, ports } });
}

function slice(name: string, of: string, pods: readonly string[]): string {
  const metadata = { name, namespace: "default", labels: { "kubernetes.io/service-name": of } };
  const endpoints = pods.map((pod, i) => ({ addresses: [`10.1.0.${i + 1}`], targetRef: { kind: "Pod", name: pod } }));
  const ports = [{ name: "http", port: 8080 }];
  return json("discovery.k8s.io/v1", "EndpointSlice", { metadata, addressType: "IPv4", ports, endpoints });
}

/** Made by hand: one finds its pod by the address, the other names a pod of another namespace. */
function looseSlice(namespace: string): string {
  const metadata = { name: "k-3", namespace: "default", labels: { "kubernetes.io/service-name": "k" } };
  const elsewhere = { addresses: ["10.1.0.7"], targetRef: { kind: "Pod", name: "k-9", namespace } };
  const endpoints = [{ addresses: ["10.1.0.3"] }, elsewhere];
  const ports = [{ name: "http", port: 8080 }];
  return json("discovery.k8s.io/v1", "EndpointSlice", { metadata, addressType: "IPv4", ports, endpoints });
}

function pod(where: string, ip: string, labels: object, { ready = "True", nodeName = "" } = {}): string {
  const [name, namespace = "default"] = where.split("/").reverse();
  const status = { phase: "Running", podIP: ip, podIPs: [{ ip }], conditions: [{ type: "Ready", status: ready }] };
  return json("v1", "Pod", { metadata: { name, namespace, labels }, spec: { containers: [], nodeName }, status });
}

function node(region: string): string {
  return json("v1", "Node", { metadata: { name: "n", labels: { "topology.kubernetes.io/region": region } } });
}

function namespace(name: string, network: string): string {
  return json("v1", "Namespace", { metadata: { name, labels: { "topology.istio.io/network": network } } });
}

/** Each object in several states; each configuration takes one of them, or none. */
const STATES: readonly (readonly ConfigObject[])[] = [
  [
    object("VirtualService", "v1", { hosts: ["a"], http: [route("a")] }),
    object("VirtualService", "v1", { hosts: ["b"], http: [route("a")] }),
  ],
  [
    object("VirtualService", "v2", { hosts: ["c"], http: [delegate("d1")] }),
    object("VirtualService", "v2", { hosts: ["c"], http: [route("a")] }),
    object("VirtualService", "v2", { hosts: ["c"], http: [delegate("d2")] }),
  ],
  [object("VirtualService", "d1", leaf("1s")), object("VirtualService", "d1", leaf("2s"))],
  [object("VirtualService", "d2", leaf("3s")), object("VirtualService", "d2", { hosts: ["d"], http: [route("a")] })],
  [
    object(
      "VirtualService",
      "other/v1",
      { hosts: ["e"], http: [route("a")] },
      { creationTimestamp: "2020-01-01T00:00:00Z" },
    ),
  ],
  [service("a", { name: "http", port: 80 }), service("a", { name: "http", port: 81 })],
  [service("b", { name: "http", port: 80 })],
  [workload("a-1", "10.0.0.1"), workload("a-1", "10.0.0.2")],
  [workload("b-1", "10.0.0.3")],
  [object("DestinationRule", "a", { host: "a" }), object("DestinationRule", "a", { host: "b" })],
  [kubernetesService("k", "10.96.0.1", { app: "k" }), kubernetesService("k", "10.96.0.1", { app: "other" })],
  [slice("k-1", "k", ["k-1"]), slice("k-1", "k", ["k-1", "k-2"]), slice("k-1", "m", ["k-2"])],
  [slice("k-2", "k", ["k-2"])],
  [pod("k-1", "10.1.0.1", { app: "k" }), pod("k-1", "10.1.0.1", { app: "k", version: "v2" })],
  [
    pod("k-2", "10.1.0.2", { app: "k" }),
    pod("k-2", "10.1.0.3", { app: "k" }),
    pod("k-2", "10.1.0.3", { app: "k" }, { ready: "False" }),
  ],
  [pod("k-4", "10.1.0.3", { app: "k" }, { nodeName: "n" }), pod("k-4", "10.1.0.4", {})],
  [pod("other/k-9", "10.1.0.7", { app: "k" }), pod("other/k-9", "10.1.0.7", { app: "k" }, { nodeName: "n" })],
  [looseSlice("other"), looseSlice("default")],
  [node("r1"), node("r2")],
  [object("WorkloadEntry", "k-3", { address: "10.1.0.9", labels: { app: "k" } })],
  [
    object("ServiceEntry", "s", { ...OUTSIDE, workloadSelector: { labels: { app: "k" } } }),
    object("ServiceEntry", "s", { ...OUTSIDE, endpoints: [{ address: "10.9.9.9" }] }),
    object("ServiceEntry", "s", { ...OUTSIDE, endpoints: [{ address: "10.9.9.8" }] }),
    object("ServiceEntry", "s", {
      ...OUTSIDE,
      hosts: ["t.example", "u.example"],
      endpoints: [{ address: "10.9.9.8" }],
    }),
  ],
  [
    ...[
      { ...OUTSIDE, hosts: ["t.example"], endpoints: [{ address: "10.9.9.7" }] },
      { ...OUTSIDE, hosts: ["t.example"], endpoints: [{ address: "10.9.9.6" }] },
      { ...OUTSIDE, endpoints: [{ address: "10.9.9.7" }] },
      // Younger than the other: of two that define one host at the same time, the one that is given first counts.
    ].map((spec) => object("ServiceEntry", "t", spec, { creationTimestamp: "2020-01-01T00:00:00Z" })),
  ],
  [namespace("istio-system", "n1"), namespace("istio-system", "n2")],
].map((states) => states.flatMap((text) => objectsOf(text)));

const configurations = fc.array(
  fc.tuple(
    fc.tuple(...STATES.map((states) => fc.option(fc.constantFrom(...states), { nil: undefined }))),
    fc.boolean(),
  ),
  { minLength: 2, maxLength: 8 },
);

/** Objects in the order of now. */
type Configuration = readonly ConfigObject[];

function assertFollowed(configurations: readonly Configuration[], byApiServer: boolean): void {
  const [mesh, features] = [meshConfigOf({}).value, { ...DEFAULT_FEATURES }];
  assert.ok(mesh);
  const followed: Snapshot[] = [];
  for (const objects of configurations) {
    const previous = followed.at(-1);
    followed.push(buildSnapshot({ objects, mesh, features, byApiServer, ...(previous && { previous }) }));
  }
  // Afterwards: what is remembered of an object is of the last snapshot that was made of it.
  for (const [i, objects] of configurations.entries()) {
    const anew = buildSnapshot({ objects, mesh, features: { ...features }, byApiServer });
    assert.deepEqual({ ...followed[i], version: 0 }, { ...anew, version: 0 });
  }
}

test("a snapshot that followed many others equals one from nothing", () => {
  fc.assert(
    fc.property(configurations, fc.boolean(), (steps, byApiServer) => {
      const each = steps.map(([chosen, isReversed]) => {
        const found = chosen.filter((one) => one !== undefined);
        return isReversed ? found.toReversed() : found;
      });
      assertFollowed(each, byApiServer);
    }),
    { numRuns: 200 },
  );
});

/** Those of hosts that several of them define are chosen as often as all others. */
const ENTRIES = [...STATES.keys()].filter((which) => STATES[which]?.[0]?.kind === "ServiceEntry");
const changes = fc.array(
  fc
    .oneof(fc.constantFrom(...STATES.keys()), fc.constantFrom(...ENTRIES))
    .chain((which) =>
      fc.record({ which: fc.constant(which), state: fc.option(fc.constantFrom(...(STATES[which] ?? []))) }),
    ),
  { minLength: 1, maxLength: 12 },
);

test("a snapshot that followed changes of one object each equals one from nothing", () => {
  fc.assert(
    fc.property(changes, fc.boolean(), (steps, byApiServer) => {
      const now: (ConfigObject | null)[] = STATES.map(([first = null]) => first);
      const each = steps.map(({ which, state }) => {
        now[which] = state;
        return now.filter((one) => one !== null);
      });
      assertFollowed(each, byApiServer);
    }),
    { numRuns: 200 },
  );
});
