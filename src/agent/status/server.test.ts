import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import type { Waiting } from "./readiness.ts";
import { startStatusServer, statusHandler } from "./server.ts";
import { requestOf, serveStatus, statusOptions } from "./status-fixture.ts";

test("/healthz/ready names all that is missing, and says once in the log that nothing is", async (t) => {
  let missing: readonly Waiting[] = [
    { name: "DNS names", reason: "no table" },
    { name: "workload certificate", reason: "not signed" },
  ];
  const { options, lines } = statusOptions({ waiting: async () => missing });
  const { get } = await serveStatus(t, options);
  const { status, body } = await get("/healthz/ready");
  assert.equal(status, 503);
  assert.equal(body, "waiting for DNS names: no table\nwaiting for workload certificate: not signed\n");
  missing = [];
  assert.equal((await get("/healthz/ready")).status, 200);
  assert.equal((await get("/healthz/ready")).status, 200);
  assert.match(lines.join(""), /warn\tEnvoy proxy is NOT ready: no table; not signed\n/);
  assert.equal(lines.join("").match(/Envoy proxy is ready/g)?.length, 1);
});

test("short answers say how long they are, and of what type", async (t) => {
  const { get } = await serveStatus(t, statusOptions().options);
  const ready = (await get("/healthz/ready")).headers;
  assert.deepEqual([ready["content-length"], ready["content-type"]], ["0", undefined]);
  const missing = (await get("/nothing")).headers;
  assert.deepEqual([missing["content-length"], missing["content-type"]], ["19", "text/plain; charset=utf-8"]);
});

test("/quitquitquit and /drain act on POST from the same machine only", async (t) => {
  const acted: string[] = [];
  const { options } = statusOptions({ quit: () => acted.push("quit"), drain: () => acted.push("drain") });
  const { get } = await serveStatus(t, options);
  assert.equal((await get("/quitquitquit")).status, 405);
  assert.equal((await get("/drain")).status, 405);
  assert.equal((await get("/quitquitquit", { method: "POST" })).body, "OK");
  assert.equal((await get("/drain", { method: "POST" })).status, 200);
  await eventually("both", () => acted.length === 2);
  for (const path of ["/quitquitquit", "/drain", "/debug/ndsz"]) {
    const answer = await statusHandler(options)(requestOf({ method: "POST", path, fromLoopback: false }));
    assert.equal(answer.status, 403, path);
  }
  assert.deepEqual(acted, ["quit", "drain"]);
});

test("/debug/ndsz shows the name table, and 404 while there is none", async (t) => {
  let table: string | undefined;
  const { get } = await serveStatus(t, statusOptions({ nameTable: () => table }).options);
  assert.deepEqual([(await get("/debug/ndsz")).status, (await get("/debug/ndsz")).body], [404, "{}"]);
  table = '{"table":{}}';
  const { status, body, headers } = await get("/debug/ndsz");
  assert.deepEqual([status, body, headers["content-type"]], [200, table, "application/json"]);
});

test("metrics can be kept for loopback", async () => {
  const { options } = statusOptions({ metricsOnLoopbackOnly: true });
  const handle = statusHandler(options);
  for (const path of ["/metrics", "/stats/prometheus"]) {
    assert.equal((await handle(requestOf({ path, fromLoopback: false }))).status, 403);
    assert.equal((await handle(requestOf({ path }))).status, 200);
  }
});

test("unknown paths are 404, also those that objects have by themselves, and unknown probes 400", async (t) => {
  const { options, lines } = statusOptions();
  const { get } = await serveStatus(t, options);
  for (const path of ["/nothing", "/__proto__", "/constructor", "/debug/pprof", "/debug/pprof/heap"])
    assert.equal((await get(path)).status, 404, path);
  assert.equal((await get("/app-health/x/livez")).status, 400);
  const { status, headers } = await get("/app-health?x=y");
  assert.deepEqual([status, headers.location], [307, "/app-health/?x=y"]);
  assert.match(lines.join(""), /error\tProber does not exists url \/app-health\/x\/livez/);
});

test("garbage on the port is refused, and the next caller is served", async (t) => {
  const { get, port } = await serveStatus(t, statusOptions().options);
  const socket = connect(port, "127.0.0.1");
  socket.write("\x16\x03\x01\x02\x00garbage\r\n\r\n");
  const [answer] = await once(socket, "data");
  assert.match(String(answer), /^HTTP\/1\.1 400 /);
  socket.destroy();
  assert.equal((await get("/healthz/ready")).status, 200);
});

test("connections stay open between probes", async (t) => {
  const { port } = await serveStatus(t, statusOptions().options);
  const socket = connect(port, "127.0.0.1");
  t.after(() => socket.destroy());
  for (let probe = 0; probe < 2; probe++) {
    socket.write("GET /healthz/ready HTTP/1.1\r\nhost: x\r\n\r\n");
    const [answer] = await once(socket, "data");
    assert.match(String(answer), /^HTTP\/1\.1 200 [\s\S]*keep-alive: timeout=3600\r\n/i);
  }
});

test("startStatusServer() says that the port is taken", async (t) => {
  const { port } = await serveStatus(t, statusOptions().options);
  await assert.rejects(startStatusServer(port, statusOptions().options), {
    code: "STATUS_PORT_NOT_OPENED",
    message: `Cannot open status port ${port}`,
  });
});
