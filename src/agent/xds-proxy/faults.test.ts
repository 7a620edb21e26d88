import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { DeltaDiscoveryResponseSchema } from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { CLUSTER_TYPE, LISTENER_TYPE, NAME_TABLE_TYPE } from "#protocol/messages/type-urls.ts";
import { eventually, startFakeControlPlane } from "../../../test/support/fake-control-plane.ts";
import { freePorts } from "../../../test/support/free-ports.ts";
import { deltaRequest, deltaResponse, read, setUp } from "../../../test/support/xds-proxy-rig.ts";

const MB = 1024 * 1024;
/** XDS_RECONNECTS=10000 is the long form. */
const RECONNECTS = Number(process.env.XDS_RECONNECTS ?? 40);

test("a response of 100 MB passes, and its memory is given back", async (t) => {
  const { envoy, connected } = await setUp(t);
  const stream = envoy();
  stream.write(deltaRequest(CLUSTER_TYPE));
  const { stream: upstream } = await connected();
  const before = process.memoryUsage().arrayBuffers;
  upstream.write(deltaResponse(CLUSTER_TYPE, "large", Buffer.alloc(100 * MB, 7)));
  const [received] = (await once(stream, "data")) as [Buffer];
  assert.ok(received.length > 100 * MB);
  upstream.write(deltaResponse(CLUSTER_TYPE, "small"));
  assert.equal(fromBinary(DeltaDiscoveryResponseSchema, (await once(stream, "data"))[0]).nonce, "small");
  stream.cancel();
  await eventually("the memory", () => {
    globalThis.gc?.();
    return process.memoryUsage().arrayBuffers < before + 350 * MB;
  });
});

test("a control plane that floods us with names is answered for each of them, and Envoy is served meanwhile", async (t) => {
  let tables = 0;
  const { envoy, connected } = await setUp(t, { ownTypes: new Map([[NAME_TABLE_TYPE, () => void tables++]]) });
  const stream = envoy();
  stream.write(deltaRequest(LISTENER_TYPE));
  const { stream: upstream, requests } = await connected();
  await eventually("our subscription", () => requests.length === 2);
  const count = 2_000;
  for (let i = 0; i < count; i++) upstream.write(deltaResponse(NAME_TABLE_TYPE, `n${i}`, Buffer.alloc(200)));
  upstream.write(deltaResponse(LISTENER_TYPE, "l1"));
  assert.equal(fromBinary(DeltaDiscoveryResponseSchema, (await once(stream, "data"))[0]).nonce, "l1");
  await eventually("all answers", () => requests.length === 2 + count, 60_000);
  assert.equal(tables, count);
  assert.equal(read(requests.at(-1) ?? Buffer.alloc(0)).responseNonce, `n${count - 1}`);
  stream.cancel();
});

test("requests are taken however many there are, while the control plane reads none", async (t) => {
  const { envoy, connected } = await setUp(t);
  const stream = envoy();
  stream.write(deltaRequest(CLUSTER_TYPE));
  const { stream: upstream, requests } = await connected();
  await eventually("the first request", () => requests.length === 1);
  upstream.pause();
  const names = Array.from({ length: 100 }, (_, i) => `${"x".repeat(1_000)}${i}`);
  for (let i = 0; i < 60; i++) stream.write(deltaRequest(CLUSTER_TYPE, { resourceNamesSubscribe: names }));
  // Responses pass all the same: neither side waits for the other.
  upstream.write(deltaResponse(CLUSTER_TYPE, "c1"));
  assert.equal(fromBinary(DeltaDiscoveryResponseSchema, (await once(stream, "data"))[0]).nonce, "c1");
  upstream.resume();
  await eventually("all requests", () => requests.length === 61);
  stream.cancel();
});

test("garbage on the socket ends that connection and no other", async (t) => {
  const { envoy, upstreams, folder } = await setUp(t);
  for (const garbage of ["GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ngarbage garbage", "\0\0\0"]) {
    const socket = connect(join(folder, "XDS"));
    socket.on("error", () => undefined);
    socket.resume().end(garbage);
    await once(socket, "close");
  }
  const stream = envoy();
  stream.write(Buffer.from([0x12, 0x7f, 1]));
  stream.resume();
  const [error] = await once(stream, "error");
  assert.match(error.details, /unreadable xDS message/);
  const next = envoy();
  next.write(deltaRequest(CLUSTER_TYPE));
  // The stream that was refused may have ended before the control plane saw it.
  await eventually("the request", () => upstreams.some(({ requests }) => requests.length === 1));
  next.cancel();
});

test("a control plane that goes away in good order is no error, one whose connection breaks is", async (t) => {
  const { plane, envoy, connected, lines, metrics } = await setUp(t);
  const way = new Relay(Number(plane.address.split(":")[1]));
  const near = await setUp(t, { plane: { ...plane, address: `localhost:${await way.listen(t)}` } });
  const ended = async (stream: ReturnType<typeof envoy>, count: number, end: () => void) => {
    stream.resume();
    stream.write(deltaRequest(CLUSTER_TYPE));
    await connected(count);
    end();
    const [error] = await once(stream, "error");
    return error.code;
  };
  assert.equal(await ended(near.envoy(), 1, () => way.end()), 14);
  assert.match(near.metrics.text(), /istiod_connection_terminations{type="cancelled"} 1\n.*{type="error"} 0\n/);
  assert.equal(await ended(near.envoy(), 2, () => way.reset()), 14);
  assert.match(near.metrics.text(), /istiod_connection_terminations{type="cancelled"} 1\n.*{type="error"} 1\n/);
  const stream = envoy();
  const over = ended(stream, 3, () => {
    plane.stopListening();
    plane.close();
  });
  assert.equal(await over, 14);
  assert.match(metrics.text(), /istiod_connection_terminations{type="cancelled"} 1\n.*{type="error"} 0\n/);
  assert.doesNotMatch(lines.join(""), /unexpected error/);
});

/** A way to a server that ends as a test says. */
class Relay {
  readonly #to: number;
  readonly #callers = new Set<Socket>();

  constructor(to: number) {
    this.#to = to;
  }

  async listen(t: { after(fn: () => void): void }): Promise<number> {
    const server = createServer((caller) => {
      const onward = connect(this.#to, "127.0.0.1");
      caller.pipe(onward).pipe(caller);
      for (const socket of [caller, onward]) socket.on("error", () => socket.destroy());
      this.#callers.add(caller);
      caller.on("close", () => {
        this.#callers.delete(caller);
        onward.destroy();
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
      this.reset();
      server.close();
    });
    return (server.address() as AddressInfo).port;
  }

  end(): void {
    for (const caller of this.#callers) caller.unpipe().end();
  }

  reset(): void {
    for (const caller of this.#callers) caller.resetAndDestroy();
  }
}

test("Envoy is told each time that there is no control plane, as long as it takes, and is served when there is one", async (t) => {
  const root = await startFakeControlPlane();
  root.close();
  const [port = 0] = await freePorts(1);
  const { envoy, metrics } = await setUp(t, { plane: { ...root, address: `localhost:${port}` } });
  const attempts = Array.from({ length: 20 }, async () => {
    const stream = envoy();
    stream.resume();
    stream.write(deltaRequest(CLUSTER_TYPE));
    const [error] = await once(stream, "error");
    assert.equal(error.code, 14);
  });
  await Promise.all(attempts);
  assert.match(metrics.text(), /istio_agent_istiod_connection_failures 20\n/);
  const late = await startFakeControlPlane({
    port,
    root: root.root,
    onStream: (upstream) => void upstream.write(deltaResponse(CLUSTER_TYPE, "late")),
  });
  t.after(() => late.close());
  const stream = envoy();
  stream.write(deltaRequest(CLUSTER_TYPE));
  assert.equal(fromBinary(DeltaDiscoveryResponseSchema, (await once(stream, "data"))[0]).nonce, "late");
  stream.cancel();
});

test(`memory and descriptors are level after ${RECONNECTS} streams`, async (t) => {
  const { envoy, upstreams } = await setUp(t);
  const once1 = async (i: number) => {
    const stream = envoy();
    stream.resume();
    stream.write(deltaRequest(LISTENER_TYPE));
    await eventually("the stream", () => upstreams.length === 1, 60_000);
    const [upstream] = upstreams.splice(0);
    if (i % 2 === 0) {
      upstream?.stream.end();
      await once(stream, "status");
    } else {
      stream.cancel();
      if (upstream?.stream.cancelled === false) await once(upstream.stream, "cancelled");
    }
  };
  const descriptors = () => readdirSync("/proc/self/fd").length;
  const heap = () => {
    globalThis.gc?.();
    return process.memoryUsage().heapUsed / MB;
  };
  const warmUp = Math.ceil(RECONNECTS / 4);
  for (let i = 0; i < warmUp; i++) await once1(i);
  const before = { descriptors: descriptors(), heap: heap() };
  for (let i = warmUp; i < RECONNECTS; i++) await once1(i);
  await eventually("level descriptors", () => descriptors() <= before.descriptors + 4);
  const grown = heap() - before.heap;
  t.diagnostic(`heap ${before.heap.toFixed(1)} MB, then ${grown.toFixed(1)} MB more; ${descriptors()} descriptors`);
  // Without a garbage collection on demand there is only a coarse limit.
  assert.ok(grown < (globalThis.gc === undefined ? 60 : 6), `the heap grew by ${grown.toFixed(1)} MB`);
});
