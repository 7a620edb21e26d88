import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { Admission, CONNECTION_BYTES, type PeerRefusal } from "../admission/admission.ts";
import { HTTP_TIMEOUTS, limitConnections } from "./limit-connections.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

async function serve(t: TestContext, listener: RequestListener, strangerBytes = 1_000_000) {
  const refusals: PeerRefusal[] = [];
  const admission = new Admission({ limits: { strangerBytes }, onRefused: (refusal) => refusals.push(refusal) });
  const server = createServer(HTTP_TIMEOUTS, listener);
  limitConnections(server, { admission, maxBodyBytes: 100 });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  /** Sends, and resolves with all that was answered until the connection ended. */
  const exchange = async (text: string) => {
    const socket = connect(port, "127.0.0.1").on("error", () => undefined);
    socket.write(text);
    return answered(socket);
  };
  return { port, admission, refusals, exchange };
}

async function answered(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  await once(socket, "close");
  return text;
}

test("limitConnections() lets requests through, one after the other on a connection", async (t) => {
  const { port, exchange } = await serve(t, (request, response) => {
    response.setHeader("connection", request.url === "/last" ? "close" : "keep-alive").end(request.url);
  });
  assert.match(await exchange("GET /last HTTP/1.1\r\nHost: a\r\n\r\n"), /^HTTP\/1\.1 200[\s\S]*\/last$/);
  const socket = connect(port, "127.0.0.1");
  socket.write("GET /first HTTP/1.1\r\nHost: a\r\n\r\n");
  await once(socket, "data");
  socket.write("GET /last HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.match(await answered(socket), /\/last$/);
});

test("limitConnections() takes headers and a body that arrive in pieces", async (t) => {
  const { port } = await serve(t, async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    response.setHeader("connection", "close").end(`${request.headers["x-a"]} ${body}`);
  });
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  for (const piece of ["POST / HTTP/1.1\r\nHost: a\r\nx-a", ": b\r\nContent-Length: 4\r\n", "\r\nbo", "dy"]) {
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.match(await answered(socket), /b body$/);
});

test("limitConnections() refuses pipelined requests and chunked bodies", async (t) => {
  let requests = 0;
  const { exchange, refusals } = await serve(t, () => {
    requests++;
  });
  assert.equal(await exchange(GET.repeat(1_000)), "");
  assert.equal(await exchange(GET.repeat(3)), "");
  assert.equal(await exchange("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"), "");
  assert.deepEqual([requests, ...refusals.map(({ reason }) => reason)], [0, "pipelined", "pipelined", "invalid"]);
});

test("limitConnections() refuses a body that is too large before it comes", async (t) => {
  const { exchange, refusals } = await serve(t, (_, response) => response.setHeader("connection", "close").end("ok"));
  assert.equal(await exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n"), "");
  assert.deepEqual(
    refusals.map(({ reason }) => reason),
    ["invalid"],
  );
});

test("limitConnections() cuts the oldest connections when there is no room", async (t) => {
  const { port, admission, refusals, exchange } = await serve(
    t,
    (_, response) => void response.setHeader("connection", "close").end("served"),
    3 * CONNECTION_BYTES.http1,
  );
  const silent = Array.from({ length: 5 }, () => connect(port, "127.0.0.1").on("error", () => undefined));
  await Promise.all(silent.map((socket) => once(socket, "connect")));
  assert.match(await exchange(GET), /served$/);
  assert.ok(refusals.length >= 3);
  assert.ok(admission.strangers.bytes <= 3 * CONNECTION_BYTES.http1);
  for (const socket of silent) socket.destroy();
});
