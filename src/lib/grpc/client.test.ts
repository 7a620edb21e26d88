import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import {
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
} from "@grpc/grpc-js";
import { RAW } from "../../../test/support/raw-messages.ts";
import { type ConnectOptions, connectGrpc } from "./connect.ts";
import { joined, type Pieces } from "./messages.ts";
import { type GrpcError, STATUS, type Status } from "./status.ts";

type Stream = ServerDuplexStream<Buffer, Buffer>;
type Unary = (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => void;

const NEVER = new AbortController().signal;

function to(port: number, more: Partial<ConnectOptions> = {}): ConnectOptions {
  const keepalive = { intervalMs: 30_000, timeoutMs: 10_000 };
  return { address: `127.0.0.1:${port}`, windowBytes: 1024 * 1024, keepalive, ...more };
}

/** A server of grpc-js. */
async function serve(t: TestContext, { stream, unary }: { stream?: (call: Stream) => void; unary?: Unary }) {
  const server = new Server({ "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 });
  server.addService(
    {
      Stream: { path: "/s/Stream", requestStream: true, responseStream: true, ...RAW },
      Unary: { path: "/s/Unary", requestStream: false, responseStream: false, ...RAW },
    },
    { Stream: (call: Stream) => stream?.(call), Unary: ((call, answer) => unary?.(call, answer)) satisfies Unary },
  );
  const port = await new Promise<number>((resolve, reject) => {
    const insecure = ServerCredentials.createInsecure();
    server.bindAsync("127.0.0.1:0", insecure, (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  t.after(() => server.forceShutdown());
  return { port, server };
}

const ask = { path: "/s/Unary", headers: { "x-who": "me" }, timeoutMs: 10_000, signal: NEVER };
const isStatus =
  (code: number, details = /./) =>
  (error: GrpcError) =>
    error.code === code && details.test(error.details);

test("unary() gives the answer, or rejects with the status", async (t) => {
  const { port } = await serve(t, {
    unary: (call, answer) => {
      if (call.request.length === 0) answer({ code: STATUS.PERMISSION_DENIED, details: "nö, 100%" });
      else answer(null, Buffer.concat([Buffer.from(String(call.metadata.get("x-who")[0])), call.request]));
    },
  });
  const connection = await connectGrpc(to(port), NEVER);
  t.after(() => connection.close());
  assert.equal(String(await connection.unary({ ...ask, message: Buffer.from("!") })), "me!");
  assert.equal((await connection.unary({ ...ask, message: Buffer.alloc(200_000) })).length, 200_002);
  await assert.rejects(
    connection.unary({ ...ask, message: Buffer.alloc(0) }),
    isStatus(STATUS.PERMISSION_DENIED, /^nö, 100%$/),
  );
  const wrong = { ...ask, path: "/s/Nothing", message: Buffer.from("!") };
  await assert.rejects(connection.unary(wrong), isStatus(STATUS.UNIMPLEMENTED));
});

test("connectGrpc() goes through a proxy, and says when that does not let it", async (t) => {
  const { port } = await serve(t, { unary: (call, answer) => answer(null, call.request) });
  const asked: string[] = [];
  const proxy = createHttpServer().on("connect", ({ url = "" }, client: Socket) => {
    asked.push(url);
    if (!url.startsWith("istiod.example")) {
      client.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
      return;
    }
    const server = connect(port, "127.0.0.1", () => client.write("HTTP/1.1 200 OK\r\n\r\n"));
    server.pipe(client).pipe(server);
    for (const socket of [client, server]) socket.on("error", () => undefined);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  t.after(() => proxy.close());
  const through = { proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
  const connection = await connectGrpc(to(0, { address: "istiod.example:15012", ...through }), NEVER);
  t.after(() => connection.close());
  assert.equal(String(await connection.unary({ ...ask, message: Buffer.from("hi") })), "hi");
  await assert.rejects(
    connectGrpc(to(0, { address: "other.example", ...through }), NEVER),
    isStatus(STATUS.UNAVAILABLE, /No connection established to other\.example: .* it answered 407/),
  );
  assert.deepEqual(asked, ["istiod.example:15012", "other.example:443"]);
});

test("unary() gives up when the time is over, or when it is told to", async (t) => {
  const { port } = await serve(t, {});
  const connection = await connectGrpc(to(port), NEVER);
  t.after(() => connection.close());
  const message = Buffer.from("x");
  await assert.rejects(connection.unary({ ...ask, message, timeoutMs: 30 }), isStatus(STATUS.DEADLINE_EXCEEDED));
  const signal = AbortSignal.abort();
  await assert.rejects(connection.unary({ ...ask, message, signal }), isStatus(STATUS.CANCELLED));
});

test("call() passes messages both ways, and ends with the server's status after the last of them", async (t) => {
  const { port } = await serve(t, {
    stream: (call) => {
      call.on("data", (message: Buffer) => {
        for (let i = 0; i < 20; i++) call.write(Buffer.concat([Buffer.alloc(50_000, i), message]));
        call.emit("error", { code: STATUS.ABORTED, details: "enough" });
      });
    },
  });
  const connection = await connectGrpc(to(port), NEVER);
  t.after(() => connection.close());
  const seen: number[] = [];
  const status = await new Promise<Status>((resolve) => {
    const call = connection.call("/s/Stream", {}, { message: (m) => void seen.push(joined(m).length), end: resolve });
    call.send(Buffer.from("go"));
  });
  assert.deepEqual([status, seen.length, seen[0]], [{ code: STATUS.ABORTED, details: "enough" }, 20, 50_002]);
});

test("a server that announces its end is noticed while calls go on; one that breaks ends them", async (t) => {
  const echo = (call: Stream) => call.on("data", (message: Buffer) => call.write(message)).on("error", () => {});
  const { port, server } = await serve(t, { stream: echo });
  const connection = await connectGrpc(to(port), NEVER);
  const messages: string[] = [];
  const status = await new Promise<Status>((resolve) => {
    const message = (pieces: Pieces) => {
      messages.push(String(joined(pieces)));
      if (messages.length === 1) server.drain(`127.0.0.1:${port}`, 60_000);
      else server.forceShutdown();
    };
    const call = connection.call("/s/Stream", {}, { message, end: resolve });
    call.send(Buffer.from("there"));
    connection.ending.addEventListener("abort", () => call.send(Buffer.from("still there")));
  });
  assert.deepEqual([status.code, messages], [STATUS.UNAVAILABLE, ["there", "still there"]]);
  assert.match(status.details, /, received prior goaway: code: NO_ERROR$/);
  const nothing = { message: () => {}, end: () => {} };
  assert.throws(() => connection.call("/s/Stream", {}, nothing), isStatus(STATUS.UNAVAILABLE));
});

test("connectGrpc() rejects when nobody answers, when it is no HTTP/2, and when it takes too long", async (t) => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, "127.0.0.1");
  const other = createServer((socket) => socket.on("error", () => {}).end("220 mail.example ESMTP\r\n")).listen(
    0,
    "127.0.0.1",
  );
  await Promise.all([once(silent, "listening"), once(other, "listening")]);
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
    other.close();
  });
  const portOf = (server: typeof silent) => (server.address() as AddressInfo).port;
  await assert.rejects(connectGrpc(to(1), NEVER), isStatus(STATUS.UNAVAILABLE, /ECONNREFUSED/));
  await assert.rejects(connectGrpc(to(portOf(other)), NEVER), isStatus(STATUS.UNAVAILABLE));
  const tls = { serverName: "istiod.example", roots: undefined };
  await assert.rejects(
    connectGrpc({ ...to(portOf(other)), tls }, NEVER),
    isStatus(STATUS.UNAVAILABLE, /: first record does not look like a TLS handshake: the server speaks plain text$/),
  );
  await assert.rejects(connectGrpc(to(portOf(silent)), AbortSignal.timeout(30)), isStatus(STATUS.DEADLINE_EXCEEDED));
  await assert.rejects(connectGrpc(to(portOf(silent)), AbortSignal.abort()), isStatus(STATUS.CANCELLED));
});

test("connectGrpc() gives up on a server that accepts connections and says nothing", async (t) => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const silent = createServer((socket) => void socket.resume().once("close", () => resolve()));
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => silent.close());
  const { port } = silent.address() as AddressInfo;
  for (const tls of [undefined, { serverName: "localhost", roots: undefined }])
    await assert.rejects(
      connectGrpc(to(port, { tls, connectTimeoutMs: 20 }), NEVER),
      isStatus(STATUS.UNAVAILABLE, /^No connection established to .*: connect ETIMEDOUT .*: no connection in 0.02 s$/),
    );
  await closed;
});

test("connectGrpc() says that an address is none", async () => {
  for (const address of ["localhost:99999", "[::1", ":443", "a b:1"])
    await assert.rejects(
      connectGrpc({ ...to(1), address }, NEVER),
      isStatus(STATUS.UNAVAILABLE, /^No connection established to .*: an address is host:port$/),
    );
});

test("a server that no longer answers is noticed by keepalive", async (t) => {
  const { port } = await serve(t, {});
  // Between them: what passes until it is frozen.
  let frozen = false;
  const relay = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    near.on("data", (bytes) => frozen || far.write(bytes)).on("close", () => far.destroy());
    far.on("data", (bytes) => frozen || near.write(bytes)).on("error", () => {});
    near.on("error", () => {});
  }).listen(0, "127.0.0.1");
  await once(relay, "listening");
  t.after(() => relay.close());
  // Much longer than a busy machine keeps a process waiting.
  const keepalive = { intervalMs: 20, timeoutMs: 1_000 };
  const connection = await connectGrpc(to((relay.address() as AddressInfo).port, { keepalive }), NEVER);
  t.after(() => connection.close());
  const ended = new Promise<Status>((resolve) => {
    connection.call("/s/Stream", {}, { message: () => {}, end: resolve });
  });
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.equal(connection.ending.aborted, false);
  frozen = true;
  assert.equal((await ended).code, STATUS.UNAVAILABLE);
});

test("an answer of HTTP becomes a status", async (t) => {
  const server = createHttp2Server().listen(0, "127.0.0.1");
  server.on("stream", (stream) => stream.respond({ ":status": 503 }, { endStream: true }));
  await once(server, "listening");
  t.after(() => server.close());
  const connection = await connectGrpc(to((server.address() as AddressInfo).port), NEVER);
  t.after(() => connection.close());
  await assert.rejects(
    connection.unary({ ...ask, message: Buffer.from("x") }),
    isStatus(STATUS.UNAVAILABLE, /HTTP status code 503/),
  );
});

test("connectGrpc() finds localhost where there are addresses of another kind only", async () => {
  const script = `
    import { createServer } from "node:http2";
    import { connectGrpc } from ${JSON.stringify(import.meta.resolve("./connect.ts"))};
    const server = createServer().listen(0, "127.0.0.1", async () => {
      const address = "localhost:" + server.address().port;
      const keepalive = { intervalMs: 30_000, timeoutMs: 10_000 };
      const connection = await connectGrpc({ address, windowBytes: 65_536, keepalive }, AbortSignal.timeout(10_000));
      console.log("connected");
      connection.close();
      server.close();
    });`;
  const inside =
    'ip link set lo up && ip addr add fd00::9/128 dev lo nodad && exec "$0" --input-type=module --eval "$1"';
  const apart = process.getuid?.() === 0 ? ["--net"] : ["--user", "--map-root-user", "--net"];
  const command = ["sh", "-c", inside, process.execPath, script];
  const { stdout } = await promisify(execFile)("unshare", [...apart, ...command]);
  assert.equal(stdout, "connected\n");
});
