import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { fetchJson } from "./fetch-json.ts";

async function serve(handler: RequestListener): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer(handler).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

test("fetchJson() gets a document", async () => {
  await using server = await serve((_, response) => void response.end('{"keys":[]}'));
  assert.deepEqual(await fetchJson(server.url), { keys: [] });
});

const BAD: Readonly<Record<string, [RequestListener, RegExp]>> = {
  "a document that is too large": [
    (_, response) => void response.end("x".repeat(2_000_000)),
    /more than 1048576 bytes/,
  ],
  "a status other than success": [(_, response) => void response.writeHead(500).end(), /status 500/],
  "a redirect": [
    (_, response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
    /fetch failed/,
  ],
  "text that is no JSON": [(_, response) => void response.end("<html>"), /JSON/],
  "a connection that breaks": [(request) => request.socket.destroy(), /fetch failed/],
};
for (const [what, [handler, reason]] of Object.entries(BAD)) {
  test(`fetchJson() refuses ${what}`, async () => {
    await using server = await serve(handler);
    await assert.rejects(fetchJson(server.url), (error: Error & { code?: string }) => {
      assert.equal(error.code, "KEYS_UNAVAILABLE");
      assert.match(String(error.cause), reason);
      return true;
    });
  });
}
