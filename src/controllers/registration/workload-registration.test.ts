import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import { NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { createLogger } from "#lib/log/log.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { ObservedProxy, Source, WorkloadEntries } from "#model/ports.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import { parseProxyNode } from "#model/proxy/proxy-node.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { objectsOf, proxyOf } from "../../../test/support/mesh.ts";
import type { EntryObject } from "./registered-entry.ts";
import { WorkloadRegistration } from "./workload-registration.ts";

const GROUP = `apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: vms, namespace: default}
spec:
  metadata:
    labels: {app: web, from: group}
    annotations: {note: x}
  template:
    labels: {from: template, only: template}
    serviceAccount: web
    ports: {http: 8080}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: default}
spec:
  hosts: [web.example.com]
  addresses: [240.0.0.1]
  ports: [{name: http, number: 80, protocol: HTTP}]
  resolution: STATIC
  location: MESH_INTERNAL
  workloadSelector: {labels: {app: web}}
`;

const KEY = "default/web.example.com";

interface Rig {
  readonly source: Store;
  readonly registration: WorkloadRegistration;
  readonly time: { now: number };
  /** Groups that were not there. */
  readonly missed: { readonly count: number };
  /** Lets time pass, and what it triggers happen. */
  pass(ms: number): Promise<void>;
  entry(): EntryObject | undefined;
  addresses(): readonly string[];
}

interface Store extends Source, WorkloadEntries {
  /** Somebody else adds an object. */
  add(object: ConfigObject): void;
  /** Somebody else deletes what is of that kind. */
  drop(kind: string): void;
}

/** Keeps what is written beside what is given. As in an API server only what is there can be changed. */
function storeOf(yaml: string): Store {
  const objects = new Map<string, ConfigObject>(objectsOf(yaml).map((object) => [objectKey(object), object]));
  const subscribers = new Set<(snapshot: Snapshot) => void>();
  const current = () =>
    buildSnapshot({ objects: [...objects.values()], mesh: DEFAULT_MESH_CONFIG, features: DEFAULT_FEATURES });
  const add = (object: ConfigObject) => {
    objects.set(objectKey(object), object);
    for (const tell of subscribers) tell(current());
  };
  const drop = (isDropped: (object: ConfigObject) => boolean) => {
    for (const [key, object] of objects) if (isDropped(object)) objects.delete(key);
    for (const tell of subscribers) tell(current());
  };
  return {
    objects: () => [...objects.values()],
    current,
    problems: () => [],
    subscribe: (tell) => {
      subscribers.add(tell);
      return () => void subscribers.delete(tell);
    },
    put: async (entry, before) => {
      assert.ok(before === undefined || objects.has(objectKey(entry)), "there is no such entry");
      add(entry);
    },
    remove: async (entry) => drop((object) => objectKey(object) === objectKey(entry)),
    add,
    drop: (wanted) => drop(({ kind }) => kind === wanted),
  };
}

function rig(yaml = GROUP, checksIdentity = true): Rig {
  const source = storeOf(yaml);
  const time = { now: Date.parse("2026-01-01T00:00:00Z") };
  const missed = { count: 0 };
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  const registration = new WorkloadRegistration({
    source,
    entries: source,
    instance: "istiod-1",
    graceMs: 10_000,
    checksIdentity,
    onMissingGroup: () => {
      missed.count++;
    },
    log: createLogger({ write: () => {} }),
    now: () => time.now,
    after: (ms, run) => {
      const timer = { at: time.now + ms, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
  });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return {
    source,
    registration,
    time,
    missed,
    pass: async (ms) => {
      time.now += ms;
      for (const timer of timers) {
        if (timer.at > time.now) continue;
        timers.delete(timer);
        timer.run();
      }
      await settled();
    },
    entry: () => source.objects().find(({ kind }) => kind === "WorkloadEntry") as EntryObject | undefined,
    addresses: () =>
      source
        .current()
        .endpoints.get(KEY)
        ?.endpoints.map(({ address }) => address) ?? [],
  };
}

function connection(rigged: Rig, id: string, more: Partial<MeshProxy> = {}): ObservedProxy {
  const metadata = { AUTO_REGISTER_GROUP: "vms", NETWORK: "n1", ...more.metadata };
  const proxy = { ...proxyOf({ ip: "10.5.0.1", labels: { from: "vm", "istio-locality": "a/b" } }), ...more, metadata };
  const verified = { namespace: "default", serviceAccount: "web" };
  return { connectionId: id, proxy: { verified, ...proxy }, connectedAt: rigged.time.now };
}

const PROBED = { AUTO_REGISTER_GROUP: "vms", PROXY_CONFIG: { readinessProbe: { tcpSocket: { port: 80 } } } };

test("a workload that joins a group gets an entry after the group's template", async () => {
  const r = rig();
  assert.equal(r.registration.connected(connection(r, "1", { nodeLocality: "eu/west" })), undefined);
  await r.pass(0);
  const entry = r.entry();
  assert.equal(entry?.metadata.name, "vms-10.5.0.1-n1");
  assert.deepEqual(entry?.spec, {
    address: "10.5.0.1",
    labels: { from: "vm", only: "template", app: "web" },
    serviceAccount: "web",
    ports: { http: 8080 },
    network: "n1",
    locality: "eu/west",
  });
  assert.deepEqual(entry?.metadata.annotations, {
    "istio.io/autoRegistrationGroup": "vms",
    note: "x",
    "istio.io/workloadController": "istiod-1",
    "istio.io/connectedAt": "2026-01-01T00:00:00.000Z",
  });
  assert.deepEqual(r.addresses(), ["10.5.0.1"]);
  assert.equal(r.source.current().endpoints.get(KEY)?.endpoints[0]?.workloadName, "vms");
});

test("an entry is where the node says, and keeps the label that said so with dots", async () => {
  const r = rig();
  const labels = { "topology.istio.io/locality": "eu.west.1", "istio-locality": "eu/west/1" };
  const node = create(NodeSchema, {
    id: "sidecar~10.5.0.1~vm.default~default.svc.cluster.local",
    metadata: { AUTO_REGISTER_GROUP: "vms", LABELS: labels },
    locality: { region: "eu", zone: "west", subZone: "1" },
  });
  const { value: proxy } = parseProxyNode(toBinary(NodeSchema, node));
  assert.ok(proxy);
  assert.equal(r.registration.connected(connection(r, "1", proxy)), undefined);
  await r.pass(0);
  assert.equal(r.entry()?.spec.locality, "eu/west/1");
  assert.equal(r.entry()?.spec.labels?.["topology.istio.io/locality"], "eu.west.1");
});

test("a workload gets its entry again when its group comes back", async (t) => {
  const r = rig();
  t.after(() => r.registration.stop());
  r.registration.connected(connection(r, "1"));
  await r.pass(0);
  const group = r.source.objects().find(({ kind }) => kind === "WorkloadGroup");
  assert.ok(group);
  r.source.drop("WorkloadGroup");
  r.source.drop("WorkloadEntry"); // as an API server does with what a group owns
  await r.pass(0);
  assert.equal(r.entry(), undefined);
  r.source.add(group);
  await r.pass(0);
  assert.deepEqual(r.addresses(), ["10.5.0.1"]);
});

test("a workload that left gets no entry when its group comes back", async (t) => {
  const r = rig();
  t.after(() => r.registration.stop());
  const only = connection(r, "1");
  r.registration.connected(only);
  await r.pass(0);
  const group = r.source.objects().find(({ kind }) => kind === "WorkloadGroup");
  assert.ok(group);
  r.registration.disconnected(only);
  await r.pass(0);
  r.source.drop("WorkloadGroup");
  r.source.drop("WorkloadEntry");
  r.source.add(group);
  await r.pass(20_000);
  assert.equal(r.entry(), undefined);
});

test("an entry that somebody deleted is made anew when its workload comes again", async (t) => {
  const r = rig();
  t.after(() => r.registration.stop());
  r.registration.connected(connection(r, "1"));
  await r.pass(0);
  r.source.drop("WorkloadEntry");
  assert.equal(r.registration.connected(connection(r, "2")), undefined);
  await r.pass(0);
  assert.deepEqual(r.addresses(), ["10.5.0.1"]);
});

test("the entry goes some time after the workload went", async () => {
  const r = rig();
  const [first, second] = [connection(r, "1"), connection(r, "2")];
  for (const each of [first, second]) r.registration.connected(each);
  await r.pass(1000);
  r.registration.disconnected(first);
  await r.pass(0);
  assert.equal(r.entry()?.metadata.annotations["istio.io/disconnectedAt"], undefined);
  r.registration.disconnected(second);
  await r.pass(0);
  assert.equal(r.entry()?.metadata.annotations["istio.io/disconnectedAt"], "2026-01-01T00:00:01.000Z");
  assert.equal(r.entry()?.metadata.annotations["istio.io/connectedAt"], undefined);
  await r.pass(9_999);
  assert.deepEqual(r.addresses(), ["10.5.0.1"]);
  await r.pass(1);
  assert.deepEqual([r.entry(), r.addresses()], [undefined, []]);
});

test("a workload that comes back in time keeps its entry", async () => {
  const r = rig();
  const first = connection(r, "1");
  r.registration.connected(first);
  await r.pass(1000);
  r.registration.disconnected(first);
  await r.pass(5000);
  r.registration.connected(connection(r, "2"));
  await r.pass(20_000);
  assert.equal(r.entry()?.metadata.annotations["istio.io/connectedAt"], "2026-01-01T00:00:06.000Z");
  assert.equal(r.entry()?.metadata.annotations["istio.io/disconnectedAt"], undefined);
  assert.deepEqual(r.addresses(), ["10.5.0.1"]);
});

test("a workload with a probe takes part once it is healthy", async () => {
  const r = rig();
  const it = connection(r, "1", { metadata: PROBED });
  r.registration.connected(it);
  await r.pass(0);
  assert.equal(r.entry()?.metadata.annotations["proxy.istio.io/health-checks-enabled"], "true");
  assert.deepEqual(r.addresses(), []);
  r.registration.health(it, undefined);
  await r.pass(0);
  assert.deepEqual(r.addresses(), ["10.5.0.1"]);
  r.registration.health(it, "no answer on port 80");
  await r.pass(0);
  assert.deepEqual(r.addresses(), []);
  assert.deepEqual(
    r.entry()?.status?.conditions?.map(({ type, status, message }) => [type, status, message]),
    [["Healthy", "False", "no answer on port 80"]],
  );
});

test("a workload is refused without group, without identity and with another's", () => {
  const r = rig();
  const refusal = (more: Partial<MeshProxy>) => r.registration.connected(connection(r, "1", more)) ?? "";
  assert.match(refusal({ metadata: { AUTO_REGISTER_GROUP: "gone" } }), /there is no WorkloadGroup "default\/gone"/);
  assert.match(refusal({ verified: undefined }), /needs a proved identity/);
  assert.match(refusal({ verified: { namespace: "default", serviceAccount: "x" } }), /for service account "web"/);
  assert.match(refusal({ verified: { namespace: "other", serviceAccount: "web" } }), /is in namespace "default"/);
  assert.equal(rig(GROUP, false).registration.connected(connection(r, "1", { verified: undefined })), undefined);
  assert.equal(r.registration.connected({ ...connection(r, "1"), proxy: proxyOf() }), undefined);
  assert.match(refusal({ metadata: { AUTO_REGISTER_GROUP: "", WORKLOAD_ENTRY: "gone" } }), /there is no WorkloadEntry/);
  assert.equal(r.missed.count, 1);
});

test("an entry that was written by hand has the health of its workload while that is there", async () => {
  const entry = (annotations: string) => `${GROUP}---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: own, namespace: default, annotations: ${annotations}}
spec: {address: 10.5.0.9, labels: {app: web}, serviceAccount: web}
`;
  const metadata = { AUTO_REGISTER_GROUP: "", WORKLOAD_ENTRY: "own" };
  const plain = rig(entry("{}"));
  assert.equal(plain.registration.connected(connection(plain, "1", { metadata })), undefined);
  await plain.pass(0);
  assert.deepEqual(plain.entry()?.metadata.annotations, {});
  const checked = rig(entry('{proxy.istio.io/health-checks-enabled: "true"}'));
  const it = connection(checked, "1", { metadata });
  assert.equal(checked.registration.connected(it), undefined);
  checked.registration.health(it, undefined);
  await checked.pass(0);
  assert.deepEqual(checked.addresses(), ["10.5.0.9"]);
  checked.registration.disconnected(it);
  await checked.pass(0);
  await checked.pass(10_000);
  assert.deepEqual([checked.addresses(), checked.entry()?.status?.conditions], [[], []]);
  const unknown = { AUTO_REGISTER_GROUP: "", WORKLOAD_ENTRY: "gone" };
  assert.match(plain.registration.connected(connection(plain, "1", { metadata: unknown })) ?? "", /no WorkloadEntry/);
});

test("names of entries fit Kubernetes", async () => {
  const r = rig(GROUP.replace("name: vms", `name: ${"g".repeat(250)}`));
  const metadata = { AUTO_REGISTER_GROUP: "g".repeat(250), NETWORK: "" };
  r.registration.connected(connection(r, "1", { addresses: ["fd00::1"], metadata }));
  await r.pass(0);
  assert.equal(r.entry()?.metadata.name.length, 253);
  assert.match(r.entry()?.metadata.name ?? "", /g-fd00--1$/);
});
