/**
 * A control plane on a real API server: how long a start with many objects takes, and how soon proxies hear of a changed
 * EndpointSlice, watch included.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { JSON_PATCH, type KubernetesApi, MERGE_PATCH } from "#lib/kubernetes/api-client.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "#protocol/messages/type-urls.ts";
import { type ApiServer, startApiServer } from "../test/support/kubernetes/api-server.ts";
import { ControlPlaneProcess } from "../test/support/kubernetes/control-plane-process.ts";
import { serviceHost } from "./mesh-folder.ts";
import { percentile } from "./percentile.ts";
import { Sidecars } from "./sidecars.ts";

export interface ClusterShape {
  readonly services: number;
  readonly podsOfService: number;
  /** Half of them VirtualServices, half DestinationRules; a service each. */
  readonly customObjects: number;
  /** Simulated, with a Sidecar that lets them see the first services. */
  readonly proxies: number;
  readonly seenServices: number;
  readonly rounds: number;
}

export interface ClusterFigures {
  readonly startSeconds: number;
  readonly startCpuSeconds: number;
  readonly privateMegabytes: number;
  readonly sliceP50Ms: number;
  readonly sliceP99Ms: number;
  /** Of the control plane, for each change. */
  readonly sliceCpuMs: number;
}

const BUNDLE = join(import.meta.dirname, "../dist/pilot-discovery.cjs");
/** Runs the bundle as people do. */
const PROGRAM = join(import.meta.dirname, "../bin/pilot-discovery");
const ISTIO = "/apis/networking.istio.io/v1";
const PARALLEL = 32;
/** CPU time in a second that counts as nothing. */
const IDLE_SECONDS = 0.05;
const CONNECT_MS = 300_000;
const PAUSE_MS = 200;
/** Clock ticks per second of /proc. */
const TICKS = 100;

export async function measureCluster(shape: ClusterShape): Promise<ClusterFigures> {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-bench-kubernetes-"));
  const server = await startApiServer();
  let plane: ControlPlaneProcess | undefined;
  try {
    const api = await server.api();
    await fill(server, api, shape);
    const start = performance.now();
    const { kubeConfig } = server;
    plane = new ControlPlaneProcess({ kubeConfig, folder, program: existsSync(BUNDLE) ? PROGRAM : undefined });
    await plane.ready();
    const startSeconds = (performance.now() - start) / 1000;
    const started = { startSeconds, startCpuSeconds: cpuSeconds(plane.pid), privateMegabytes: megabytes(plane.pid) };
    return { ...started, ...(await sliceChanges(api, plane, shape)) };
  } finally {
    await plane?.end();
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function sliceChanges(api: KubernetesApi, plane: ControlPlaneProcess, shape: ClusterShape) {
  const address = await plane.address("gRPC discovery service");
  using sidecars = new Sidecars(address, { proxies: shape.proxies, services: shape.seenServices, own: false });
  const types = [CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE];
  const all = types.map((typeUrl) => sidecars.everyone(typeUrl, Buffer.alloc(0), CONNECT_MS));
  sidecars.connect();
  await Promise.all(all);
  await settled(plane.pid);
  const latencies: number[] = [];
  const cpu = cpuSeconds(plane.pid);
  for (let round = 0; round < shape.rounds; round++) {
    const endpoint = `10.250.0.${round + 1}`;
    const heard = sidecars.everyone(ENDPOINT_TYPE, Buffer.from(endpoint));
    const path = `/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/svc-3`;
    // One pod more, and then another in its place.
    const op = round === 0 ? "add" : "replace";
    const body = [{ op, path: `/endpoints/${shape.podsOfService}`, value: { addresses: [endpoint] } }];
    await api.call({ method: "PATCH", path, body, contentType: JSON_PATCH });
    latencies.push(...(await heard));
    // One change at a time: what is left to do for it when all have it would else be counted with the next.
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  if (sidecars.failures.length > 0) throw new Error(`streams ended: ${sidecars.failures.join()}`);
  const sliceCpuMs = ((cpuSeconds(plane.pid) - cpu) * 1000) / shape.rounds;
  return { sliceP50Ms: percentile(latencies, 0.5), sliceP99Ms: percentile(latencies, 0.99), sliceCpuMs };
}

/** Until the control plane has nothing to do: pushes to so many go on for a while after the last of them has its first. */
async function settled(pid: number): Promise<void> {
  for (let before = -1, now = cpuSeconds(pid); now - before > IDLE_SECONDS; ) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    [before, now] = [now, cpuSeconds(pid)];
  }
}

/** What a cluster of that shape holds. */
async function fill(server: ApiServer, api: KubernetesApi, shape: ClusterShape): Promise<void> {
  await server.define(customResourceDefinitions());
  await server.kubectl(["create", "namespace", "istio-system"]);
  const indexes = Array.from({ length: shape.services }, (_, index) => index);
  await inParallel(indexes, (index) => putService(api, index, shape));
  const custom = Array.from({ length: shape.customObjects / 2 }, (_, index) => index % shape.services);
  await inParallel(custom, (index, i) => putCustom(api, index, i));
  const hosts = Array.from({ length: shape.seenServices }, (_, index) => `default/${serviceHost(index)}`);
  await post(api, ISTIO, "sidecars", { name: "default" }, { kind: "Sidecar", spec: { egress: [{ hosts }] } });
}

async function putService(api: KubernetesApi, index: number, { podsOfService }: ClusterShape): Promise<void> {
  const name = `svc-${index}`;
  const ports = [
    { name: "http", port: 8000 },
    { name: "tcp", port: 9000 },
  ];
  await post(api, "/api/v1", "services", { name }, { kind: "Service", spec: { selector: { app: name }, ports } });
  const endpoints: object[] = [];
  for (let i = 0; i < podsOfService; i++) {
    const pod = `${name}-${i}`;
    const ip = `10.${10 + i}.${index >> 8}.${index & 255}`;
    const spec = { containers: [{ name: "app", image: "app:1", ports: [{ containerPort: 8000 }] }] };
    await post(api, "/api/v1", "pods", { name: pod, labels: { app: name, version: `v${i}` } }, { kind: "Pod", spec });
    const conditions = [{ type: "Ready", status: "True" }];
    const status = { phase: "Running", podIP: ip, podIPs: [{ ip }], conditions };
    const path = `/api/v1/namespaces/default/pods/${pod}/status`;
    await api.call({ method: "PATCH", path, body: { status }, contentType: MERGE_PATCH });
    endpoints.push({ addresses: [ip], targetRef: { kind: "Pod", name: pod, namespace: "default" } });
  }
  const metadata = { name, labels: { "kubernetes.io/service-name": name } };
  const slice = { kind: "EndpointSlice", addressType: "IPv4", ports, endpoints };
  await post(api, "/apis/discovery.k8s.io/v1", "endpointslices", metadata, slice);
}

async function putCustom(api: KubernetesApi, index: number, i: number): Promise<void> {
  const host = serviceHost(index);
  const route = { hosts: [host], http: [{ timeout: "5s", route: [{ destination: { host, subset: "v0" } }] }] };
  const rule = { host, subsets: [{ name: "v0", labels: { version: "v0" } }] };
  const [routes, rules] = [
    { kind: "VirtualService", spec: route },
    { kind: "DestinationRule", spec: rule },
  ];
  await post(api, ISTIO, "virtualservices", { name: `route-${i}` }, routes);
  await post(api, ISTIO, "destinationrules", { name: `rule-${i}` }, rules);
}

async function post(api: KubernetesApi, base: string, plural: string, metadata: object, rest: object): Promise<void> {
  const path = `${base}/namespaces/default/${plural}`;
  const apiVersion = base.replace(/^\/apis?\//, "");
  await api.call({ method: "POST", path, body: { apiVersion, metadata, ...rest } });
}

async function inParallel<Item>(items: readonly Item[], work: (item: Item, i: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < items.length; i = next++) await work(items[i] as Item, i);
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
}

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

function megabytes(pid: number): number {
  return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}
