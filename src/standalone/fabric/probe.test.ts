import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import test from "node:test";
import { type ProbeResult, probe, watchReadiness } from "./probe.ts";

async function serve(answer: RequestListener): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return { server, port: address.port };
}

async function ask(answer: RequestListener, timeoutMs = 1000): Promise<ProbeResult> {
  const { server, port } = await serve(answer);
  try {
    return await probe({ address: "127.0.0.1", port, httpGet: { path: "/up", headers: { host: "web" } }, timeoutMs });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("probe() takes 200 to 399 as ready, and says what else it got", async () => {
  const seen: string[] = [];
  const ready = await ask((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.host}`);
    response.writeHead(302).end();
  });
  assert.equal(ready, undefined);
  assert.deepEqual(seen, ["GET /up web"]);
  assert.equal(await ask((_, response) => response.writeHead(503).end()), "HTTP 503");
  assert.equal(await ask(() => undefined, 20), "no answer in 20 ms");
});

test("probe() without a path takes an accepted connection", async () => {
  const { server, port } = await serve(() => undefined);
  assert.equal(await probe({ address: "127.0.0.1", port, timeoutMs: 1000 }), undefined);
  server.close();
  await once(server, "close");
  assert.match(
    (await probe({ address: "127.0.0.1", port, timeoutMs: 1000 })) ?? "",
    /^nothing listens on port \d+ of 127/,
  );
});

test("watchReadiness() is ready at the first success and not ready after failures in a row", async () => {
  const answers: ProbeResult[] = ["down", undefined, "down", undefined, "down", "down", undefined];
  const seen: string[] = [];
  const stop = new AbortController();
  const timing = { initialDelayMs: 0, periodMs: 0, failureThreshold: 2, successThreshold: 1 };
  await watchReadiness(
    {
      ask: () => {
        const answer = answers.shift();
        seen.push(answer ?? "up");
        if (answers.length === 0) queueMicrotask(() => setImmediate(() => stop.abort()));
        return Promise.resolve(answer);
      },
      timing,
      onChange: (result) => seen.push(result === undefined ? "=> ready" : `=> not ready (${result})`),
      onWaiting: (reason) => seen.push(`=> waiting (${reason})`),
    },
    stop.signal,
  );
  assert.deepEqual(seen.slice(0, 12), [
    "down",
    "=> waiting (down)",
    "up",
    "=> ready",
    "down",
    "up",
    "down",
    "down",
    "=> not ready (down)",
    "=> waiting (down)",
    "up",
    "=> ready",
  ]);
});
