import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import {
  CLUSTER_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  PROXY_CONFIG_TYPE,
} from "#protocol/messages/type-urls.ts";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import { deltaRequest, deltaResponse, read, setUp } from "../../../test/support/xds-proxy-rig.ts";
import type { HealthState } from "../health/workload-health.ts";
import { caCertificates } from "./proxy-config-resource.ts";

const HEALTH_TYPE = "type.googleapis.com/istio.v1.HealthInformation";

class Health {
  current: HealthState | undefined;
  readonly #listeners = new Set<() => void>();

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  set(state: HealthState): void {
    this.current = state;
    for (const listener of this.#listeners) listener();
  }
}

test("the workload's health is told once listeners were asked for, at each change, and again on a new stream", async (t) => {
  const health = new Health();
  const { envoy, connected } = await setUp(t, { health });
  health.set({ healthy: true });
  const stream = envoy();
  stream.resume();
  stream.write(deltaRequest(CLUSTER_TYPE));
  const { stream: upstream, requests } = await connected();
  await eventually("the request for clusters", () => requests.length === 1);
  stream.write(deltaRequest(LISTENER_TYPE));
  await eventually("health after listeners", () => requests.length === 3);
  health.set({ healthy: false, message: "refused" });
  await eventually("the change", () => requests.length === 4);
  const told = requests.slice(2).map((request) => read(request));
  assert.deepEqual(
    told.map(({ typeUrl, errorDetail }) => [typeUrl, errorDetail?.code, errorDetail?.message]),
    [
      [HEALTH_TYPE, undefined, undefined],
      [HEALTH_TYPE, 13, "refused"],
    ],
  );
  upstream.end();
  await once(stream, "status");
  const next = envoy("StreamAggregatedResources");
  next.write(Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl: LISTENER_TYPE }))));
  const { requests: again } = await connected(2);
  await eventually("the last state", () => again.length === 2);
  const last = fromBinary(DiscoveryRequestSchema, again[1] ?? Buffer.alloc(0));
  assert.deepEqual([last.typeUrl, last.errorDetail?.message], [HEALTH_TYPE, "refused"]);
  next.cancel();
});

test("ProxyConfig and the name table are asked for in this order, and each is acknowledged by itself", async (t) => {
  const roots: string[][] = [];
  const ownTypes = new Map<string, (resource: Uint8Array) => void>([
    [NAME_TABLE_TYPE, () => undefined],
    [PROXY_CONFIG_TYPE, (resource) => void roots.push([...caCertificates(resource)])],
  ]);
  const { envoy, connected } = await setUp(t, { ownTypes });
  const stream = envoy();
  stream.write(deltaRequest(LISTENER_TYPE));
  const { stream: upstream, requests } = await connected();
  await eventually("three requests", () => requests.length === 3);
  assert.deepEqual(
    requests.map((request) => read(request).typeUrl),
    [LISTENER_TYPE, NAME_TABLE_TYPE, PROXY_CONFIG_TYPE],
  );
  const proxyConfig = new MessageWriter().string(1, "path").string(34, "PEM 1").string(34, "PEM 2").finish();
  upstream.write(deltaResponse(PROXY_CONFIG_TYPE, "p1", proxyConfig));
  await eventually("the answer", () => requests.length === 4);
  upstream.write(deltaResponse(PROXY_CONFIG_TYPE, "p2", Buffer.from([0x92, 0x02, 0x7f])));
  await eventually("the refusal", () => requests.length === 5);
  assert.deepEqual(roots, [["PEM 1", "PEM 2"]]);
  const [ack, nack] = requests.slice(3).map((request) => read(request));
  assert.deepEqual([ack?.responseNonce, ack?.errorDetail, nack?.responseNonce], ["p1", undefined, "p2"]);
  assert.notEqual(nack?.errorDetail, undefined);
  stream.cancel();
});

test("a response of ours without resources is not answered, and one of another type than it says is refused", async (t) => {
  const { envoy, connected } = await setUp(t, { ownTypes: new Map([[NAME_TABLE_TYPE, () => undefined]]) });
  const stream = envoy();
  stream.write(deltaRequest(LISTENER_TYPE));
  const { stream: upstream, requests } = await connected();
  await eventually("two requests", () => requests.length === 2);
  const response = (nonce: string, resources: object[]) =>
    Buffer.from(
      toBinary(
        DeltaDiscoveryResponseSchema,
        create(DeltaDiscoveryResponseSchema, { typeUrl: NAME_TABLE_TYPE, nonce, resources }),
      ),
    );
  upstream.write(response("empty", []));
  upstream.write(response("wrong", [{ name: "x", resource: { typeUrl: CLUSTER_TYPE, value: new Uint8Array() } }]));
  await eventually("one answer", () => requests.length === 3);
  const last = read(requests[2] ?? Buffer.alloc(0));
  assert.deepEqual(
    [last.responseNonce, last.errorDetail?.message],
    ["wrong", `the resource is of type "${CLUSTER_TYPE}"`],
  );
  stream.cancel();
});

test("extensions are converted aside: others overtake them, they do not overtake each other", async (t) => {
  const waiting: ((resources: Uint8Array[]) => void)[] = [];
  const convertExtensions = () => new Promise<Uint8Array[]>((resolve) => waiting.push(resolve));
  const { envoy, connected } = await setUp(t, { convertExtensions });
  const stream = envoy();
  const received: Buffer[] = [];
  stream.on("data", (message) => received.push(message));
  stream.write(deltaRequest(CLUSTER_TYPE));
  stream.write(deltaRequest(EXTENSION_TYPE));
  const { stream: upstream, requests } = await connected();
  await eventually("both requests", () => requests.length === 2);
  upstream.write(deltaResponse(EXTENSION_TYPE, "e1"));
  upstream.write(deltaResponse(EXTENSION_TYPE, "e2"));
  upstream.write(deltaResponse(CLUSTER_TYPE, "c1"));
  await eventually("the clusters", () => received.length === 1);
  await eventually("the first conversion", () => waiting.length === 1);
  const any = new MessageWriter().string(1, EXTENSION_TYPE).string(2, "converted").finish();
  waiting[0]?.([any]);
  await eventually("the second conversion", () => waiting.length === 2);
  waiting[1]?.([any]);
  await eventually("all three", () => received.length === 3);
  const decoded = received.map((message) => fromBinary(DeltaDiscoveryResponseSchema, message));
  assert.deepEqual(
    decoded.map(({ nonce }) => nonce),
    ["c1", "e1", "e2"],
  );
  const { name, version, resource } = decoded[1]?.resources[0] ?? {};
  assert.deepEqual([name, version, String(Buffer.from(resource?.value ?? []))], ["x", "1", "converted"]);
  stream.cancel();
});

test("extensions that cannot be converted never reach Envoy and are refused in its name", async (t) => {
  const convertExtensions = () => Promise.reject(new Error("no sense"));
  const { envoy, connected } = await setUp(t, { convertExtensions });
  const delta = envoy();
  delta.on("data", () => assert.fail("Envoy got it"));
  delta.write(deltaRequest(EXTENSION_TYPE));
  const { stream: upstream, requests } = await connected();
  upstream.write(deltaResponse(EXTENSION_TYPE, "e1"));
  await eventually("the refusal", () => requests.length === 2);
  const nack = read(requests[1] ?? Buffer.alloc(0));
  assert.deepEqual(
    [nack.typeUrl, nack.responseNonce, nack.errorDetail?.code, nack.errorDetail?.message],
    [EXTENSION_TYPE, "e1", 13, "no sense"],
  );
  delta.cancel();

  const sotw = envoy("StreamAggregatedResources");
  const request = (more: object) =>
    Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl: EXTENSION_TYPE, ...more })));
  sotw.write(request({}));
  sotw.write(request({ versionInfo: "v1", responseNonce: "n1" }));
  const second = await connected(2);
  await eventually("both requests", () => second.requests.length === 2);
  const response = create(DiscoveryResponseSchema, { typeUrl: EXTENSION_TYPE, versionInfo: "v2", nonce: "n2" });
  second.stream.write(Buffer.from(toBinary(DiscoveryResponseSchema, response)));
  await eventually("the refusal", () => second.requests.length === 3);
  const refused = fromBinary(DiscoveryRequestSchema, second.requests[2] ?? Buffer.alloc(0));
  assert.deepEqual([refused.versionInfo, refused.responseNonce], ["v1", "n2"]);
  sotw.cancel();
});

test("a resource without content is refused, of a type of our own as of extensions", async (t) => {
  const { envoy, connected } = await setUp(t, {
    ownTypes: new Map([[NAME_TABLE_TYPE, () => undefined]]),
    convertExtensions: async (resources) => {
      if (resources.some(({ length }) => length === 0)) throw new Error("empty");
      return resources;
    },
  });
  const stream = envoy();
  stream.write(deltaRequest(LISTENER_TYPE));
  const { stream: upstream, requests } = await connected();
  await eventually("our request", () => requests.length === 2);
  for (const typeUrl of [NAME_TABLE_TYPE, EXTENSION_TYPE]) {
    const response = create(DeltaDiscoveryResponseSchema, { typeUrl, nonce: "1", resources: [{ name: "x" }] });
    upstream.write(Buffer.from(toBinary(DeltaDiscoveryResponseSchema, response)));
  }
  await eventually("two answers", () => requests.length === 4, 5_000);
  const answers = requests.slice(2).map((request) => read(request));
  assert.deepEqual(
    answers.map(({ responseNonce, errorDetail }) => [responseNonce, errorDetail?.code]),
    Array(2).fill(["1", 13]),
  );
  stream.cancel();
});
