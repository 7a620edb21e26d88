import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { joined, MessageSplitter } from "#lib/grpc/messages.ts";
import { createLogger } from "#lib/log/log.ts";
import { CLUSTER_TYPE, LISTENER_TYPE, NAME_TABLE_TYPE } from "#protocol/messages/type-urls.ts";
import {
  eventually,
  type FakeControlPlane,
  type Stream,
  startFakeControlPlane,
} from "../../../test/support/fake-control-plane.ts";
import { freePorts } from "../../../test/support/free-ports.ts";
import { deltaRequest, deltaResponse, read, setUp } from "../../../test/support/xds-proxy-rig.ts";

/** A field that goes on beyond its message. */
const BROKEN = Buffer.from([0x22, 0x7f, 1]);

test("the xDS proxy passes messages on as they are, with token and headers", async (t) => {
  const { envoy, connected, metrics } = await setUp(t);
  const stream = envoy();
  const request = deltaRequest(CLUSTER_TYPE);
  stream.write(request);
  const { stream: upstream, kind, requests } = await connected();
  await eventually("the request", () => requests.length === 1);
  assert.equal(kind, "delta");
  assert.deepEqual(requests[0], request);
  assert.deepEqual(
    ["authorization", "clusterid", "x-extra"].map((name) => upstream.metadata.get(name)[0]),
    ["Bearer secret-token", "Kubernetes", "1"],
  );
  const response = deltaResponse(CLUSTER_TYPE, "n1", Buffer.from("cluster bytes"));
  upstream.write(response);
  const [received] = await once(stream, "data");
  assert.deepEqual(received, response);
  assert.match(metrics.text(), /istio_agent_xds_proxy_requests 1\n/);
  assert.match(metrics.text(), /istio_agent_xds_proxy_responses 1\n/);
  assert.match(metrics.text(), new RegExp(`istio_agent_pilot_xds_recv_max ${request.length}\n`));
  stream.cancel();
});

test("the xDS proxy asks for the name table once, after the first request for listeners, and acknowledges it itself", async (t) => {
  const tables: string[] = [];
  const ownTypes = new Map([
    [NAME_TABLE_TYPE, (resource: Uint8Array) => void tables.push(String(Buffer.from(resource)))],
  ]);
  const { envoy, connected } = await setUp(t, { ownTypes });
  const stream = envoy();
  let toEnvoy = 0;
  stream.on("data", () => toEnvoy++);
  stream.write(deltaRequest(CLUSTER_TYPE));
  stream.write(deltaRequest(LISTENER_TYPE));
  stream.write(deltaRequest(LISTENER_TYPE, { responseNonce: "l1" }));
  const { stream: upstream, requests } = await connected();
  await eventually("four requests", () => requests.length === 4);
  assert.deepEqual(
    requests.map((request) => read(request).typeUrl).map((type) => type.split(".").at(-1)),
    ["Cluster", "Listener", "NameTable", "Listener"],
  );
  upstream.write(deltaResponse(NAME_TABLE_TYPE, "nds-1", Buffer.from("names")));
  await eventually("the acknowledgement", () => requests.length === 5);
  const last = requests[4];
  assert.equal(last && read(last).responseNonce, "nds-1");
  assert.equal(last && read(last).errorDetail, undefined);
  assert.deepEqual(tables, ["names"]);
  assert.equal(toEnvoy, 0);
  stream.cancel();
});

test("the xDS proxy tells of each message where its scope is at debug", async (t) => {
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line), levels: { default: "debug" } });
  const { envoy, connected } = await setUp(t, { log });
  const stream = envoy();
  stream.write(deltaRequest(LISTENER_TYPE));
  const { stream: upstream, requests } = await connected();
  await eventually("the request", () => requests.length === 1);
  upstream.write(deltaResponse(LISTENER_TYPE, "n1", Buffer.from("bytes")));
  await once(stream, "data");
  assert.match(lines.join(""), /\tdebug\trequest of Envoy\tid=1 type=lds\n/);
  assert.match(lines.join(""), /\tdebug\tupstream response\tid=1 type=lds\n/);
  stream.cancel();
});

test("the xDS proxy refuses a name table that cannot be read, with the reason", async (t) => {
  const ownTypes = new Map([
    [
      NAME_TABLE_TYPE,
      () => {
        throw new Error("no table");
      },
    ],
  ]);
  const { envoy, connected, lines } = await setUp(t, { ownTypes });
  const stream = envoy();
  stream.write(deltaRequest(LISTENER_TYPE));
  const { stream: upstream, requests } = await connected();
  await eventually("two requests", () => requests.length === 2);
  upstream.write(deltaResponse(NAME_TABLE_TYPE, "nds-1"));
  await eventually("the refusal", () => requests.length === 3);
  const last = requests[2];
  assert.deepEqual(last && [read(last).responseNonce, read(last).errorDetail?.message], ["nds-1", "no table"]);
  assert.match(lines.join(""), /Refused a response of type nds: no table/);
  stream.cancel();
});

test("the xDS proxy passes a state-of-the-world stream on as one", async (t) => {
  const tables: string[] = [];
  const ownTypes = new Map([
    [NAME_TABLE_TYPE, (resource: Uint8Array) => void tables.push(String(Buffer.from(resource)))],
  ]);
  const { envoy, connected, lines } = await setUp(t, { ownTypes });
  const stream = envoy("StreamAggregatedResources");
  const request = (typeUrl: string) =>
    Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl })));
  const response = (typeUrl: string, value: string) =>
    Buffer.from(
      toBinary(
        DiscoveryResponseSchema,
        create(DiscoveryResponseSchema, {
          typeUrl,
          versionInfo: "v1",
          nonce: "n1",
          resources: [{ typeUrl, value: Buffer.from(value) }],
        }),
      ),
    );
  stream.write(request(LISTENER_TYPE));
  const { stream: upstream, kind, requests } = await connected();
  assert.equal(kind, "sotw");
  assert.match(lines.join(""), /connected to upstream XDS server/);
  await eventually("two requests", () => requests.length === 2);
  upstream.write(response(NAME_TABLE_TYPE, "names"));
  await eventually("the acknowledgement", () => requests.length === 3);
  const last = fromBinary(DiscoveryRequestSchema, requests[2] ?? Buffer.alloc(0));
  assert.deepEqual([last.typeUrl, last.versionInfo, last.responseNonce], [NAME_TABLE_TYPE, "v1", "n1"]);
  assert.deepEqual(tables, ["names"]);
  upstream.write(response(LISTENER_TYPE, "listeners"));
  assert.deepEqual((await once(stream, "data"))[0], response(LISTENER_TYPE, "listeners"));
  stream.cancel();
});

test("the xDS proxy passes on what is Envoy's, asked for or not, and nothing else", async (t) => {
  const { envoy, connected, lines } = await setUp(t);
  const stream = envoy();
  stream.write(deltaRequest(CLUSTER_TYPE));
  stream.write(deltaRequest("istio.io/debug/syncz"));
  const { stream: upstream } = await connected();
  upstream.write(deltaResponse(LISTENER_TYPE, "l1"));
  upstream.write(deltaResponse("istio.io/debug/syncz", "d1"));
  upstream.write(deltaResponse("type.googleapis.com/istio.workload.Workload", "w1"));
  upstream.write(deltaResponse(CLUSTER_TYPE, "c1"));
  const nonces: string[] = [];
  stream.on("data", (bytes) => nonces.push(fromBinary(DeltaDiscoveryResponseSchema, bytes).nonce));
  await eventually("the last", () => nonces.includes("c1"));
  assert.deepEqual(nonces, ["l1", "w1", "c1"]);
  assert.match(lines.join(""), /Skipping a response of type istio\.io\/debug\/syncz, /);
  stream.cancel();
});

test("the xDS proxy passes the end of the control plane's stream on to Envoy, with its status", async (t) => {
  const { envoy, connected, lines } = await setUp(t);
  const stream = envoy();
  stream.resume();
  stream.write(deltaRequest(CLUSTER_TYPE));
  const { stream: upstream } = await connected();
  upstream.emit("error", { code: 16, details: "token expired" });
  const [error] = await once(stream, "error");
  assert.deepEqual([error.code, error.details], [16, "token expired"]);
  assert.match(lines.join(""), /warn\tupstream terminated with unexpected error UNAUTHENTICATED: token expired/);

  const next = envoy();
  next.resume();
  next.write(deltaRequest(CLUSTER_TYPE));
  (await connected(2)).stream.end();
  const [status] = await once(next, "status");
  assert.equal(status.code, 0);
});

test("the xDS proxy ends the control plane's stream when Envoy's is gone", async (t) => {
  const { envoy, connected } = await setUp(t);
  const stream = envoy();
  stream.write(deltaRequest(CLUSTER_TYPE));
  const { stream: upstream } = await connected();
  stream.cancel();
  if (!upstream.cancelled) await once(upstream, "cancelled");
});

test("the xDS proxy gives each stream of Envoy one of its own", async (t) => {
  const { envoy, connected, upstreams } = await setUp(t);
  const one = envoy();
  one.write(deltaRequest(CLUSTER_TYPE));
  await connected(1);
  // Opened only now: streams that open together reach the control plane in any order.
  const two = envoy();
  two.write(deltaRequest(CLUSTER_TYPE));
  const { stream: second } = await connected(2);
  assert.notEqual(upstreams[0]?.stream.getPeer(), second.getPeer());
  second.write(deltaResponse(CLUSTER_TYPE, "only-two"));
  assert.equal(fromBinary(DeltaDiscoveryResponseSchema, (await once(two, "data"))[0]).nonce, "only-two");
  one.cancel();
  two.cancel();
});

test("the xDS proxy passes many megabytes in order, and holds the control plane back while Envoy does not read", async (t) => {
  const { idleEnvoy, connected } = await setUp(t);
  using call = idleEnvoy(deltaRequest(CLUSTER_TYPE));
  const { stream: upstream } = await connected();
  const count = 120;
  const large = new Uint8Array(500_000);
  let written = 0;
  const send = () => {
    while (written < count)
      if (!upstream.write(deltaResponse(CLUSTER_TYPE, String(++written), large)))
        return void upstream.once("drain", send);
  };
  send();
  // Nobody reads: what is on its way is bounded by buffers and windows, not by what the control plane has.
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.ok(written < count, `all ${written} messages were taken before the first was read`);
  const nonces: string[] = [];
  const splitter = new MessageSplitter(-1, (message) =>
    nonces.push(fromBinary(DeltaDiscoveryResponseSchema, joined(message)).nonce),
  );
  call.stream.on("data", (chunk: Buffer) => splitter.push(chunk));
  await eventually("all messages", () => nonces.length === count);
  assert.deepEqual(
    nonces,
    Array.from({ length: count }, (_, i) => String(i + 1)),
  );
});

test("the xDS proxy ends a stream whose message cannot be read, and lives on", async (t) => {
  const { envoy, connected } = await setUp(t);
  const stream = envoy();
  stream.resume();
  stream.write(deltaRequest(CLUSTER_TYPE));
  const { stream: upstream } = await connected();
  upstream.write(BROKEN);
  const [error] = await once(stream, "error");
  assert.deepEqual([error.code, /unreadable xDS message/.test(error.details)], [13, true]);
  const next = envoy();
  next.write(deltaRequest(CLUSTER_TYPE));
  await connected(2);
  next.cancel();
});

test("the end of each stream counts once on either side, by what ended it there", async (t) => {
  const { envoy, connected, upstreams, metrics } = await setUp(t);
  const counts = () =>
    [...metrics.text().matchAll(/(istiod|envoy)_connection_terminations{type="(\w+)"} (\d+)/g)]
      .flatMap(([, side, type, count]) => (count === "0" ? [] : [`${side} ${type} ${count}`]))
      .sort()
      .join(", ");
  const opened = async () => {
    const stream = envoy();
    stream.resume();
    stream.write(deltaRequest(CLUSTER_TYPE));
    return { stream, upstream: (await connected(upstreams.length + 1)).stream };
  };
  const ends: readonly [(of: Awaited<ReturnType<typeof opened>>) => void, string][] = [
    [({ upstream }) => upstream.emit("error", { code: 7, details: "no" }), "envoy cancelled 1, istiod error 1"],
    [({ upstream }) => upstream.end(), "envoy cancelled 2, istiod cancelled 1, istiod error 1"],
    [({ stream }) => stream.cancel(), "envoy cancelled 3, istiod cancelled 2, istiod error 1"],
    [({ stream }) => stream.end(), "envoy cancelled 4, istiod cancelled 3, istiod error 1"],
    [({ upstream }) => upstream.write(BROKEN), "envoy cancelled 5, istiod cancelled 3, istiod error 2"],
    [({ stream }) => stream.write(BROKEN), "envoy cancelled 5, envoy error 1, istiod cancelled 4, istiod error 2"],
  ];
  for (const [end, expected] of ends) {
    end(await opened());
    await eventually(
      () => `${expected}; it is ${counts()}`,
      () => counts() === expected,
      5_000,
    );
  }
});

test("the xDS proxy says what was wrong with a stream of Envoy", async (t) => {
  const { envoy, connected, lines, metrics } = await setUp(t, { maxRequestBytes: 1_000 });
  const told = (what: RegExp) =>
    eventually(
      () => `${what} in ${lines.join("")}`,
      () => what.test(lines.join("")),
      5_000,
    );
  const broken = envoy();
  broken.resume();
  broken.write(deltaRequest(CLUSTER_TYPE));
  await connected();
  broken.write(BROKEN);
  await told(/\twarn\tdownstream terminated with unexpected error INTERNAL: unreadable xDS message: .*\tid=1\n/);
  const large = envoy();
  large.resume();
  large.write(deltaRequest(CLUSTER_TYPE));
  await connected(2);
  large.write(deltaRequest(CLUSTER_TYPE, { resourceNamesSubscribe: ["x".repeat(1_000)] }));
  await told(/\twarn\tdownstream terminated with unexpected error RESOURCE_EXHAUSTED: .*\tid=2\n/);
  const left = envoy();
  left.write(deltaRequest(CLUSTER_TYPE));
  await connected(3);
  left.cancel();
  await eventually("its end", () => /envoy_connection_terminations{type="cancelled"} 1\n/.test(metrics.text()));
  assert.doesNotMatch(lines.join(""), /upstream terminated|id=3.*terminated/);
});

test("the xDS proxy waits for a control plane that is not there yet", async (t) => {
  const root = await startFakeControlPlane();
  root.close();
  const [port = 0] = await freePorts(1);
  const { envoy } = await setUp(t, { plane: { ...root, address: `localhost:${port}` } });
  const stream = envoy();
  stream.write(deltaRequest(CLUSTER_TYPE));
  const late = await new Promise<FakeControlPlane>((resolve, reject) => {
    setTimeout(() => {
      const onStream = (upstream: Stream) => void upstream.write(deltaResponse(CLUSTER_TYPE, "late"));
      startFakeControlPlane({ port, root: root.root, onStream }).then(resolve, reject);
    }, 200);
  });
  t.after(() => late.close());
  assert.equal(fromBinary(DeltaDiscoveryResponseSchema, (await once(stream, "data"))[0]).nonce, "late");
  stream.cancel();
});

test("the xDS proxy tells Envoy why there is no control plane: no root certificate, or one that does not fit", async (t) => {
  const { envoy, folder, metrics } = await setUp(t);
  writeFileSync(join(folder, "root.pem"), "");
  const stream = envoy();
  stream.resume();
  const [error] = await once(stream, "error");
  assert.deepEqual([error.code, /root\.pem holds no certificate/.test(error.details)], [14, true]);
  assert.match(metrics.text(), /istio_agent_istiod_connection_terminations{type="error"} 1\n/);
});
