import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { test } from "node:test";
import { freePort } from "../../../test/support/free-ports.ts";
import { type Arrival, hasRoute, startCall } from "./dial.ts";
import { greet } from "./listeners.ts";

const HERE = "127.0.0.1";

async function listening(server: Server): Promise<number> {
  server.listen(0, HERE);
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return address.port;
}

async function call(port: number, signal = AbortSignal.timeout(5_000)): Promise<Arrival> {
  const started = await startCall({ address: HERE, port }, HERE);
  return started.arrival("hello", signal);
}

test("startCall() leads to the port of ours that was reached", async () => {
  const port = await freePort();
  await using _ = await greet({ address: HERE, port }, "hello");
  assert.deepEqual(await call(port), { port });
});

test("startCall() takes nobody else for ours", async () => {
  const server = createServer((socket) => socket.end("220 mail"));
  const port = await listening(server);
  assert.deepEqual(await call(port), { failure: "another program answered" });
  server.close();
});

test("startCall() says that nobody listens, or nobody answers in time", async () => {
  assert.deepEqual(await call(await freePort()), { failure: "connection refused" });
  const silent = createServer();
  const port = await listening(silent);
  const controller = new AbortController();
  silent.on("connection", () => controller.abort());
  assert.deepEqual(await call(port, controller.signal), { failure: "nobody answered" });
  silent.close();
});

test("greet() says which port is taken", async () => {
  const server = createServer();
  const port = await listening(server);
  await assert.rejects(greet({ address: HERE, port }, "hello"), {
    code: "CAPTURE_INEFFECTIVE",
    message: `Cannot listen on ${HERE}:${port}`,
  });
  server.close();
});

test("hasRoute() finds the way to loopback", async () => {
  assert.equal(await hasRoute({ address: HERE, port: 1 }), true);
});
