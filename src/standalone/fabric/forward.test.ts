import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";
import { text } from "node:stream/consumers";
import test from "node:test";
import { forward } from "./forward.ts";

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return address.port;
}

test("forward() passes bytes both ways, also after the caller has said all it had to say", async () => {
  const echo = createServer({ allowHalfOpen: true }, (socket) => {
    void text(socket).then((said) => socket.end(`you said ${said}`));
  });
  const port = await listening(echo);
  const front = createServer();
  const frontPort = await listening(front);
  const stop = forward(front, { address: "127.0.0.1", port });
  try {
    const socket = connect({ port: frontPort, host: "127.0.0.1", allowHalfOpen: true });
    socket.end("hello");
    assert.equal(await text(socket), "you said hello");
  } finally {
    stop();
    echo.close();
  }
});

test("forward() ends the caller's connection when nobody is there to answer", async () => {
  const gone = createServer();
  const port = await listening(gone);
  gone.close();
  const front = createServer();
  const frontPort = await listening(front);
  const stop = forward(front, { address: "127.0.0.1", port });
  try {
    const socket = connect(frontPort, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.resume();
    await once(socket, "close");
  } finally {
    stop();
  }
});
