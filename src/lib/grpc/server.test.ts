import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientSessionOptions, connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect as connectTcp, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { Client, type ClientDuplexStream, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { RAW } from "../../../test/support/raw-messages.ts";
import { UnreadCall } from "../../../test/support/unread-call.ts";
import { joined } from "./messages.ts";
import { grpcServer, type ServerOptions } from "./server.ts";
import type { Methods, ServerCall } from "./server-call.ts";
import { GrpcError, OK, STATUS, type Status } from "./status.ts";
import { unaryMethod } from "./unary-method.ts";

/** Our server, and a client of grpc-js for it. */
async function serve(t: TestContext, methods: Methods, options: Partial<ServerOptions> = {}) {
  const server = grpcServer(methods, { maxMessageBytes: -1, maxStreams: undefined, ...options });
  // For both families, as the control plane listens: callers by IPv4 then come in IPv6's form.
  const listener = createServer((socket) => server.take(socket)).listen(0);
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.use_local_subchannel_pool": 1,
  });
  t.after(() => {
    client.close();
    server.close();
    listener.close();
  });
  const unary = (path: string, request: Buffer, deadlineMs = 10_000) =>
    new Promise<Buffer | undefined>((resolve, reject) => {
      const options = { deadline: Date.now() + deadlineMs };
      const { requestSerialize, responseDeserialize } = RAW;
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        new Metadata(),
        options,
        (error, answer) => (error === null ? resolve(answer) : reject(error)),
      );
    });
  const open = (path: string): ClientDuplexStream<Buffer, Buffer> => {
    const stream = client.makeBidiStreamRequest(path, RAW.requestSerialize, RAW.responseDeserialize);
    stream.on("error", () => undefined);
    return stream;
  };
  return { port, server, unary, open };
}

const isStatus = (code: number, details?: RegExp) => (error: ServiceError) =>
  error.code === code && (details === undefined || details.test(error.details));

test("unaryMethod() answers one message with another, or with what it throws", async (t) => {
  const { unary } = await serve(t, {
    "/s/Echo": unaryMethod(async (request) => request),
    "/s/Refuse": unaryMethod(async () => {
      throw new GrpcError(STATUS.NOT_FOUND, "no Ünicorn, 100%");
    }),
    "/s/Break": unaryMethod(async () => {
      throw new Error("broken");
    }),
  });
  assert.deepEqual(await unary("/s/Echo", Buffer.alloc(300_000, 5)), Buffer.alloc(300_000, 5));
  assert.deepEqual(await unary("/s/Echo", Buffer.alloc(0)), Buffer.alloc(0));
  await assert.rejects(unary("/s/Refuse", Buffer.from("x")), isStatus(STATUS.NOT_FOUND, /^no Ünicorn, 100%$/));
  await assert.rejects(unary("/s/Break", Buffer.from("x")), isStatus(STATUS.INTERNAL, /broken/));
});

test("a method that is not there is refused", async (t) => {
  const { unary } = await serve(t, {});
  await assert.rejects(unary("/s/Nothing", Buffer.from("x")), isStatus(STATUS.UNIMPLEMENTED, /\/s\/Nothing/));
});

test("messages beyond the limit end their call, and the signal tells whoever serves it", async (t) => {
  const reasons: unknown[] = [];
  const { open } = await serve(
    t,
    {
      "/s/Stream": (call) => {
        call.gone.addEventListener("abort", () => reasons.push(call.gone.reason));
        call.serve({ message: (message) => void call.send(message) });
      },
    },
    { maxMessageBytes: 10 },
  );
  const stream = open("/s/Stream");
  stream.write(Buffer.alloc(10));
  assert.equal((await once(stream, "data"))[0].length, 10);
  stream.write(Buffer.alloc(11));
  const [error] = await once(stream, "error");
  assert.equal(error.code, STATUS.RESOURCE_EXHAUSTED);
  assert.equal((reasons[0] as GrpcError).code, STATUS.RESOURCE_EXHAUSTED);
});

test("whoever serves a call later is told that its client sends no more", async (t) => {
  let early: ServerCall | undefined;
  const { open, unary } = await serve(t, {
    "/s/Stream": (call) => {
      early = call;
    },
    "/s/Serve": unaryMethod(async (request) => {
      early?.serve({ message: () => undefined, end: () => early?.end({ ...OK, details: "seen" }) });
      return request;
    }),
  });
  const stream = open("/s/Stream");
  stream.resume();
  stream.end();
  const ended = once(stream, "status");
  await unary("/s/Serve", Buffer.from("x")); // on the same connection, behind the end
  const [status] = await ended;
  assert.deepEqual([status.code, status.details], [STATUS.OK, "seen"]);
});

test("the end of a call comes after all of its messages, with its status", async (t) => {
  const { open } = await serve(t, {
    "/s/Stream": (call) => {
      call.serve({
        message: (message) => {
          for (let i = 0; i < 50; i++) call.send(Buffer.concat([Buffer.alloc(20_000, i), joined(message)]));
          call.end({ code: STATUS.ABORTED, details: "enough" });
          assert.equal(call.send(Buffer.from("too late")), true);
        },
      });
    },
  });
  const stream = open("/s/Stream");
  let messages = 0;
  stream.on("data", () => messages++);
  stream.write(Buffer.from("go"));
  const [error] = await once(stream, "error");
  assert.deepEqual([error.code, error.details, messages], [STATUS.ABORTED, "enough", 50]);
});

test("a client that gives up, or whose time is over, is gone", async (t) => {
  const gone: string[] = [];
  const calls: string[] = [];
  const wait = (name: string) =>
    unaryMethod((_, call) => {
      calls.push(name);
      call.gone.addEventListener("abort", () => gone.push(name));
      return new Promise(() => undefined);
    });
  const { unary, open } = await serve(t, { "/s/Late": wait("late"), "/s/Cancel": wait("cancel") });
  await assert.rejects(unary("/s/Late", Buffer.from("x"), 1_000), isStatus(STATUS.DEADLINE_EXCEEDED));
  const stream = open("/s/Cancel");
  stream.write(Buffer.from("x"));
  while (!calls.includes("cancel")) await new Promise((resolve) => setTimeout(resolve, 5));
  stream.cancel();
  while (gone.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(gone.sort(), ["cancel", "late"]);
});

test("a reader that does not read is noticed, and when it reads again", async (t) => {
  const [messages, messageBytes] = [200, 60_000];
  let sent = 0;
  const { port } = await serve(t, {
    "/s/Flood": (call) => {
      const flood = () => {
        while (sent < messages) {
          sent++;
          if (!call.send([Buffer.alloc(messageBytes / 2, 1), Buffer.alloc(messageBytes / 2, 2)])) return;
        }
        call.end();
      };
      call.serve({ message: flood, drain: flood });
    },
  });
  using call = new UnreadCall(`127.0.0.1:${port}`, "/s/Flood", Buffer.from("x"));
  const { stream } = call;
  await once(stream, "response");
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(sent < messages, `all ${sent} messages were sent though nobody reads`);
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  const [trailers] = await once(stream, "trailers");
  assert.equal(trailers["grpc-status"], "0");
  if (!stream.readableEnded) await once(stream, "end");
  assert.equal(bytes, messages * (5 + messageBytes));
});

test("what is not gRPC is answered as HTTP has it", async (t) => {
  const { port } = await serve(t, {});
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  t.after(() => session.destroy());
  const stream = session.request({ ":path": "/" });
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 415);
  stream.close();
});

const ECHO: Methods = { "/s/Stream": (call) => call.serve({ message: (message) => void call.send(message) }) };

test("a client that no longer answers is cut off, and one that answers is not", async (t) => {
  const { port } = await serve(t, ECHO, { keepalive: { intervalMs: 20, timeoutMs: 1_500 } });
  const [silent, lively] = [connectTcp(port, "127.0.0.1"), connectHttp2(`http://127.0.0.1:${port}`)];
  t.after(() => lively.destroy());
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
  silent.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings])); // and then nothing
  silent.resume();
  await once(silent, "close");
  assert.equal(lively.destroyed, false);
});

test("an old connection is told to go while its calls go on", async (t) => {
  const { port } = await serve(t, ECHO, { maxAgeMs: 500 });
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  t.after(() => session.destroy());
  const stream = session.request({ ":method": "POST", ":path": "/s/Stream", "content-type": "application/grpc" });
  await once(session, "goaway");
  stream.write(Buffer.from([0, 0, 0, 0, 1, 7]));
  assert.deepEqual((await once(stream, "data"))[0], Buffer.from([0, 0, 0, 0, 1, 7]));
});

test("stop() lets calls finish, and cuts those that do not in time", async (t) => {
  const { open, server } = await serve(t, ECHO);
  const stream = open("/s/Stream");
  stream.write(Buffer.from("x"));
  await once(stream, "data");
  const ended = new Promise<Status>((resolve) => stream.once("status", resolve));
  const stopped = server.stop(1_500);
  stream.write(Buffer.from("y"));
  assert.equal(String((await once(stream, "data"))[0]), "y");
  await stopped;
  assert.equal((await ended).code, STATUS.UNAVAILABLE);
});

test("all values of a header are there, and where the call came from", async (t) => {
  let seen: unknown;
  const { port } = await serve(t, {
    "/s/Look": (call) => {
      seen = [call.values("authorization"), call.peer.replace(/\d+$/, "port"), call.certificate];
      call.end();
    },
  });
  const lax: ClientSessionOptions & { strictSingleValueFields: boolean } = { strictSingleValueFields: false };
  const session = connectHttp2(`http://127.0.0.1:${port}`, lax);
  t.after(() => session.destroy());
  const head = [":method", "POST", ":scheme", "http", ":authority", "x", ":path", "/s/Look"];
  const twice = ["content-type", "application/grpc", "authorization", "Basic x", "authorization", "Bearer y"];
  await once(session.request([...head, ...twice], { endStream: true }).resume(), "close");
  assert.deepEqual(seen, [["Basic x", "Bearer y"], "127.0.0.1:port", undefined]);
});
