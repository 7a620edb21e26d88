/** Ten thousand objects are no reason to stop answering. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readDocument } from "#lib/yaml/read.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
} from "#protocol/messages/type-urls.ts";
import { TestControlPlane } from "../../test/support/control-plane.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";

const SERVICES = 4_000;
/** Of processor time, so that a busy machine does not count; here it is far less. */
const MOST_MS = 200;
/** What a machine like that takes to read this many of the objects once. A slower one takes longer for all it does. */
const YARDSTICK = { objects: 2_000, ms: 100 };

/** 10,000 objects in all. */
function objects(): string[] {
  return Array.from({ length: SERVICES }, (_, i) => {
    const meta = (name: string) => `metadata: {name: ${name}-${i}, namespace: ns-${i % 20}}`;
    const selector = `{app: svc-${i}}`;
    const service = `apiVersion: v1\nkind: Service\n${meta("svc")}\nspec:\n  selector: ${selector}\n  ports: [{name: http, port: 80, targetPort: 8080}, {name: tcp, port: ${9000 + (i % 50)}}]\n`;
    const workload = `apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\n${meta("we")}\nspec: {address: 10.1.${i >> 8}.${i & 255}, labels: ${selector}, serviceAccount: sa-${i}}\n`;
    const route = `apiVersion: networking.istio.io/v1\nkind: VirtualService\n${meta("vs")}\nspec:\n  hosts: [svc-${i}]\n  http: [{match: [{uri: {prefix: /a}}], route: [{destination: {host: svc-${i}}}]}, {route: [{destination: {host: svc-${i}}}]}]\n`;
    return i % 2 === 0 ? [service, workload, route] : [service, workload];
  }).flat();
}

/** The most that one turn may take on this machine. */
function mostMs(): number {
  const texts = objects().slice(0, YARDSTICK.objects);
  const before = process.threadCpuUsage();
  for (const text of texts) readDocument(text);
  const { user, system } = process.threadCpuUsage(before);
  return MOST_MS * Math.max(1, (user + system) / 1000 / YARDSTICK.ms);
}

/** The most processor time that one turn of the event loop took. */
class LoopWatch implements Disposable {
  longestMs = 0;
  readonly #timer: NodeJS.Timeout;

  constructor() {
    let before = process.threadCpuUsage();
    this.#timer = setInterval(() => {
      const { user, system } = process.threadCpuUsage(before);
      before = process.threadCpuUsage();
      this.longestMs = Math.max(this.longestMs, (user + system) / 1000);
    }, 1);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

test("10,000 objects: not ready until they are read, and the event loop is never blocked", async () => {
  const most = mostMs();
  await using controlPlane = new TestControlPlane({ files: { "all.yaml": objects().join("---\n") } });
  const http = await controlPlane.address("HTTP service");
  using watch = new LoopWatch();
  const early = await fetch(`http://${http}/ready`);
  assert.equal(early.status, 503);
  assert.match(await early.text(), /^waiting for /);
  await controlPlane.ready();
  assert.equal((await fetch(`http://${http}/ready`)).status, 200);
  await controlPlane.logged(/Configuration read\tfiles=1 objects=10000/);
  const started = watch.longestMs;
  assert.ok(started < most, `start: one turn took ${started} ms of at most ${most}`);

  const node = nodeOf(proxyOf({ ip: "10.1.0.1", namespace: "ns-1" }));
  using client = new XdsClient(await controlPlane.address("gRPC discovery service"), { node, patienceMs: 60_000 });
  const names = Array.from({ length: SERVICES }, (_, i) => `outbound|80||svc-${i}.ns-${i % 20}.svc.cluster.local`);
  client.request(CLUSTER_TYPE);
  client.request(ENDPOINT_TYPE, { subscribe: names });
  client.request(LISTENER_TYPE);
  client.request(ROUTE_TYPE, { subscribe: ["80"] });
  client.request(NAME_TABLE_TYPE);
  for (const typeUrl of [CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE, NAME_TABLE_TYPE]) {
    assert.ok((await client.take(typeUrl)).resources.length > 0, typeUrl);
  }
  assert.ok(watch.longestMs < most, `push: one turn took ${watch.longestMs} ms of at most ${most}`);
});

test("a list of 10,000 objects in one document does not block the event loop either", async () => {
  const most = mostMs();
  const items = objects().map((text) => readDocument(text).value);
  const files = { "list.json": JSON.stringify({ apiVersion: "v1", kind: "List", items }) };
  await using controlPlane = new TestControlPlane({ files });
  await controlPlane.address("HTTP service");
  using watch = new LoopWatch();
  await controlPlane.ready();
  await controlPlane.logged(/Configuration read\tfiles=1 objects=10000/);
  assert.ok(watch.longestMs < most, `one turn took ${watch.longestMs} ms of at most ${most}`);
});
