import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { fetchText } from "../http-client.ts";
import { ConnectionLimit, limitedHttpServer } from "./connection-limit.ts";

function sockets(limit: ConnectionLimit, count: number): Socket[] {
  return Array.from({ length: count }, () => {
    const socket = new Socket();
    limit.add(socket);
    return socket;
  });
}

test("ConnectionLimit replaces a connection that was never used before one that waits for its next request", () => {
  const limit = new ConnectionLimit(3);
  const [kept, unused, busy] = sockets(limit, 3) as [Socket, Socket, Socket];
  limit.begin(kept);
  limit.end(kept);
  limit.begin(busy);
  sockets(limit, 1);
  assert.deepEqual([kept.destroyed, unused.destroyed, busy.destroyed, limit.size], [false, true, false, 3]);
});

test("ConnectionLimit replaces idle connections before busy ones, and the least recently used of them first", () => {
  const limit = new ConnectionLimit(2);
  const [first, second] = sockets(limit, 2) as [Socket, Socket];
  for (const socket of [second, first]) {
    limit.begin(socket);
    limit.end(socket);
  }
  limit.begin(first);
  for (const socket of sockets(limit, 1)) limit.begin(socket);
  assert.deepEqual([first.destroyed, second.destroyed], [false, true]);
  sockets(limit, 1);
  assert.equal(first.destroyed, true, "all are busy");
});

/** Resolves when the other side has cut the connection, with or without a reset. */
function closed(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.resume().on("close", resolve));
}

async function serve(t: TestContext, max: number) {
  const asked: string[] = [];
  const server = limitedHttpServer(max, (request, response) => {
    asked.push(request.url ?? "");
    if (request.url !== "/hang") response.end("ok");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, asked };
}

test("limitedHttpServer() serves new callers while a flood holds connections, idle or busy", async (t) => {
  const { port } = await serve(t, 8);
  const held = Array.from({ length: 40 }, (_, index) => {
    const socket = connect(port, "127.0.0.1").on("error", () => undefined);
    if (index % 2 === 0) socket.write("GET /hang HTTP/1.1\r\nhost: x\r\n\r\n");
    t.after(() => socket.destroy());
    return once(socket, "connect");
  });
  await Promise.all(held);
  const answer = await fetchText({ host: "127.0.0.1", port, path: "/", timeoutMs: 10_000 });
  assert.equal(answer.body, "ok");
});

test("limitedHttpServer() cuts a connection that sends many requests without waiting for responses", async (t) => {
  const { port, asked } = await serve(t, 8);
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  socket.write("GET /hang HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100));
  await closed(socket);
  assert.equal(asked.length, 4, "and does not serve what it had read");
});
