/** An application that attacks the status port of its agent. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import { parseAppProbes } from "./probes/parse.ts";
import { statusHandler } from "./server.ts";
import { requestOf, serveApp, serveStatus, statusOptions } from "./status-fixture.ts";

function caller(t: TestContext, port: number, request = ""): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  t.after(() => socket.destroy());
  if (request !== "") socket.write(request);
  return socket;
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

test("thousands of idle connections are replaced, and probes are answered meanwhile", async (t) => {
  const { port, get: ask } = await serveStatus(t, statusOptions().options);
  let open = 0;
  for (let batch = 0; batch < 12; batch++) {
    const sockets = Array.from({ length: 250 }, () => caller(t, port));
    for (const socket of sockets) {
      open++;
      socket.resume().on("close", () => open--);
    }
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    assert.equal((await ask("/healthz/ready")).status, 200);
  }
  await eventually("few connections", () => open <= 128);
});

test("scrapers that never read hold few connections to the application, and keep no probe out", async (t) => {
  let scrapes = 0;
  const endless: RequestListener = (_, response) => {
    scrapes++;
    const more = () => {
      while (!response.destroyed && response.write("metric 1\n".repeat(10_000)));
    };
    response.writeHead(200, { "content-type": "text/plain" }).on("drain", more);
    more();
  };
  const application = { port: await serveApp(t, endless), path: "/metrics", https: false };
  const { options } = statusOptions();
  const status = await serveStatus(t, { ...options, scrape: { ...options.scrape, application } });
  for (let held = 0; held < 100; held++) caller(t, status.port, get("/stats/prometheus"));
  await eventually("scrapes", () => scrapes === 4);
  assert.equal((await status.get("/stats/prometheus")).status, 503, "as many as one caller may have");
  assert.equal((await status.get("/healthz/ready")).status, 200);
  assert.equal(scrapes, 4);
});

test("an application that never answers its probes does not make the agent hold more than some of them", async (t) => {
  let probes = 0;
  const port = await serveApp(t, () => void probes++);
  const path = "/app-health/app/livez";
  const { options } = statusOptions({
    probes: parseAppProbes(JSON.stringify({ [path]: { httpGet: { path: "/", port } } })),
  });
  const status = await serveStatus(t, options);
  for (let held = 0; held < 200; held++) caller(t, status.port, get(path));
  await eventually("probes", () => probes === 32);
  assert.equal((await status.get(path)).status, 503);
  assert.equal((await status.get("/healthz/ready")).status, 200);
  assert.equal(probes, 32);
});

test("readiness requests that come at the same time are one question to Envoy", async () => {
  let questions = 0;
  const answer = Promise.withResolvers<readonly []>();
  const waiting = () => {
    questions++;
    return answer.promise;
  };
  const handle = statusHandler(statusOptions({ waiting }).options);
  const asked = Array.from({ length: 200 }, () => handle(requestOf({ path: "/healthz/ready" })));
  answer.resolve([]);
  const statuses = (await Promise.all(asked)).map(({ status }) => status);
  assert.deepEqual([questions, new Set(statuses)], [1, new Set([200])]);
  assert.equal((await handle(requestOf({ path: "/healthz/ready" }))).status, 200);
  assert.equal(questions, 2);
});
