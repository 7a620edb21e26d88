import assert from "node:assert/strict";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { freePorts } from "../../../../test/support/free-ports.ts";
import { type Context, requestOf, serveApp, serveStatus, statusOptions, text } from "../status-fixture.ts";
import { connectFrom, probeSource } from "./connect.ts";
import { KeptConnections } from "./kept-connections.ts";
import { parseAppProbes } from "./parse.ts";
import { type ProbeTarget, runProbe } from "./run.ts";

const TARGET: ProbeTarget = { host: "127.0.0.1", statusPort: 15020, connect: connectFrom("127.0.0.1"), http2: true };
const http = (port: number, path = "/", timeoutMs = 1000) =>
  ({ kind: "http", port, path, https: false, timeoutMs }) as const;

test("/app-health passes status and body of the application on, and answers 500 when it does not answer", async (t) => {
  const port = await serveApp(t, text("teapot", "text/plain", 418));
  const [closed = 0] = await freePorts(1);
  const probes = parseAppProbes(
    JSON.stringify({
      "/app-health/app/livez": { httpGet: { port, path: "x" } },
      "/app-lifecycle/app/prestopz": { httpGet: { port, path: "x" } },
      "/app-health/app/readyz": { httpGet: { port: closed } },
      "/app-health/app/startupz": { tcpSocket: { port: closed } },
      "/app-health/open/startupz": { tcpSocket: { port } },
      "/app-health/grpc/livez": { grpc: { port: closed } },
      "/app-health/far/livez": { tcpSocket: { port: 70_000 } },
    }),
  );
  const { options, lines } = statusOptions({ probes });
  const { get } = await serveStatus(t, options);
  for (const path of ["/app-health/app/livez", "/app-lifecycle/app/prestopz"]) {
    const answer = await get(path);
    assert.deepEqual([answer.status, answer.body], [418, "teapot"]);
  }
  assert.equal((await get("/app-health/open/startupz")).status, 200);
  for (const name of ["app/readyz", "app/startupz", "grpc/livez", "far/livez"]) {
    assert.equal((await get(`/app-health/${name}`)).status, 500, name);
  }
  assert.match(
    lines.join(""),
    /error\tprobes\tRequest to probe app failed: .*ECONNREFUSED.*\(\/app-health\/app\/readyz\)/,
  );
});

test("a probe of any kind ends with its time", async (t) => {
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  for (const probe of [
    http(port, "/", 30),
    { ...http(port, "/", 30), https: true },
    { kind: "grpc", port, service: "", timeoutMs: 30 } as const,
  ]) {
    const { status, problem } = await runProbe(probe, requestOf({}), TARGET);
    assert.equal(status, 500);
    assert.match(problem ?? "", /no answer in 30 ms/, `${probe.kind} ${JSON.stringify(probe)}`);
  }
  const never: ProbeTarget = {
    ...TARGET,
    connect: (_, signal) => new Promise((__, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  };
  const tcp = await runProbe({ kind: "tcp", port, timeoutMs: 30 }, requestOf({}), never);
  assert.equal(tcp.status, 500);
});

test("a probe without a time of its own, as hooks are, lasts until its caller is gone", async (t) => {
  const arrived = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  const port = await serveApp(t, (_, response) => {
    response.on("close", left.resolve);
    arrived.resolve();
  });
  const caller = new AbortController();
  const request = { ...requestOf({}), signal: caller.signal };
  const hook = runProbe({ ...http(port), timeoutMs: undefined }, request, TARGET);
  await arrived.promise;
  caller.abort();
  await left.promise;
  assert.equal((await hook).status, 500);
});

test("a body of any length is cut to what the kubelet keeps, and an endless one is not waited for", async (t) => {
  const port = await serveApp(t, (_, response) => {
    const timer = setInterval(() => response.write("x".repeat(1000)), 1);
    response.on("close", () => clearInterval(timer));
  });
  const { status, body } = await runProbe(http(port), requestOf({}), TARGET);
  assert.deepEqual([status, String(body).length], [200, 10 * 1024]);
});

test("the status tells, whether its body is cut off or takes longer than the probe may, and how long its headers are", async (t) => {
  const port = await serveApp(t, (incoming, response) => {
    const long = incoming.url === "/long" ? { "x-long": "x".repeat(100_000) } : {};
    response.writeHead(207, { "content-length": 6, ...long });
    if (incoming.url === "/long") response.end("larger");
    else response.write("half");
    if (incoming.url === "/cut") setTimeout(() => response.destroy(), 20);
  });
  const answerOf = async (path: string) => {
    const { status, body } = await runProbe(http(port, path, 300), requestOf({}), TARGET);
    return [status, body];
  };
  assert.deepEqual(await answerOf("/cut"), [207, "half"]);
  assert.deepEqual(await answerOf("/slow"), [207, "half"]);
  assert.deepEqual(await answerOf("/long"), [207, "larger"]);
});

test("the application sees the probe's headers, and its own port in place of the status port", async (t) => {
  let seen: Readonly<Record<string, unknown>> = {};
  const port = await serveApp(t, (incoming, response) => {
    seen = incoming.headersDistinct;
    response.end();
  });
  const headers = { host: ["app.example:15020"], "x-many": ["a", "b"], "user-agent": ["kube-probe/1.33"] };
  await runProbe(http(port), requestOf({ headers }), TARGET);
  assert.deepEqual(seen.host, [`app.example:${port}`]);
  assert.deepEqual(seen["x-many"], ["a", "b"]);
  assert.deepEqual(seen["user-agent"], ["kube-probe/1.33"]);
});

test("redirects are followed on the same host, elsewhere they are a sign of life, and endless or unreadable ones fail", async (t) => {
  const port = await serveApp(t, (incoming, response) => {
    const to = {
      "/near": "/end",
      "/far": "http://192.0.2.1/",
      "/loop": "/loop",
      "/odd": "http://[",
      "/mail": "ftp://127.0.0.1/",
    }[incoming.url ?? ""];
    if (to === undefined) response.writeHead(204).end();
    else response.writeHead(307, { location: to }).end();
  });
  const statusOf = async (path: string) => (await runProbe(http(port, path), requestOf({}), TARGET)).status;
  assert.deepEqual(
    await Promise.all(["/near", "/far", "/odd", "/loop", "/mail"].map(statusOf)),
    [204, 200, 500, 500, 500],
  );
});

test("a redirect leads to another port of the host, which is then told its own name and who sent the probe", async (t) => {
  const seen: unknown[] = [];
  const other = await serveApp(t, (incoming, response) => {
    seen.push([incoming.url, incoming.headers.host, incoming.headers.referer]);
    if (incoming.url === "/a/b?c=d") response.writeHead(302, { location: "e" }).end();
    else response.writeHead(203).end();
  });
  const port = await serveApp(t, (_, response) => {
    response.writeHead(301, { location: `http://127.0.0.1:${other}/a/b?c=d` }).end();
  });
  const { status } = await runProbe(http(port), requestOf({ headers: { host: ["app"] } }), TARGET);
  assert.equal(status, 203);
  assert.deepEqual(seen, [
    ["/a/b?c=d", `127.0.0.1:${other}`, `http://127.0.0.1:${port}/`],
    ["/a/e", `127.0.0.1:${other}`, `http://127.0.0.1:${other}/a/b?c=d`],
  ]);
});

test("an answer that names a place without sending there is a sign of life", async (t) => {
  const port = await serveApp(t, (incoming, response) => {
    const status = Number(incoming.url?.slice(1));
    response.writeHead(status, { location: "/503" }).end();
  });
  const statusOf = async (code: number) => (await runProbe(http(port, `/${code}`), requestOf({}), TARGET)).status;
  assert.deepEqual(await Promise.all([300, 304, 305, 308].map(statusOf)), [200, 200, 200, 503]);
});

test("a probe is sent without the body of whoever asked for it, and with a path that a request can have", async (t) => {
  const port = await serveApp(t, (incoming, response) => {
    response.end(`${incoming.method} ${incoming.url} ${incoming.headers["content-length"]}`);
  });
  const path = "/app-health/a/livez";
  const [probe] = parseAppProbes(
    JSON.stringify({ [path]: { httpGet: { port, path: 'a b/\u00fc"?x=y z#end' } } }),
  ).values();
  assert.ok(probe !== undefined);
  const { body } = await runProbe(probe, requestOf({ headers: { "content-length": ["5"] } }), TARGET);
  assert.equal(body, "GET /a%20b/%C3%BC%22?x=y%20z undefined");
});

test("bytes that are no text come as they are", async (t) => {
  const port = await serveApp(t, (_, response) => void response.end(Buffer.from([0xff, 0, 0x80])));
  const probes = parseAppProbes(JSON.stringify({ "/app-health/a/livez": { httpGet: { port } } }));
  const { get } = await serveStatus(t, statusOptions({ probes }).options);
  const { headers } = await get("/app-health/a/livez");
  assert.deepEqual([headers["content-type"], headers["content-length"]], ["application/octet-stream", "3"]);
});

async function grpcApp(t: Context, answer: { status: string; body?: Buffer; seen?: (agent: string) => void }) {
  const server = createHttp2Server();
  server.on("stream", (stream, headers) => {
    answer.seen?.(String(headers["user-agent"]));
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": answer.status }));
    stream.end(answer.body ?? Buffer.alloc(0));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

test("a gRPC probe wants SERVING, says what it got else, and carries the caller's user agent", async (t) => {
  const health = (value: number) => Buffer.from([0, 0, 0, 0, 2, 8, value]);
  let agent = "";
  const seen = (name: string) => {
    agent = name;
  };
  const probe = async (answer: { status: string; body?: Buffer }) => {
    const port = await grpcApp(t, { ...answer, seen });
    const request = requestOf({ headers: { "user-agent": ["kube-probe"] } });
    return runProbe({ kind: "grpc", port, service: "a", timeoutMs: 1000 }, request, TARGET);
  };
  assert.equal((await probe({ status: "0", body: health(1) })).status, 200);
  assert.equal(agent, "kube-probe");
  assert.equal((await probe({ status: "0", body: health(2) })).status, 500);
  assert.equal((await probe({ status: "0" })).status, 500);
  assert.match((await probe({ status: "12" })).problem ?? "", /does not implement the grpc health protocol/);
  assert.match((await probe({ status: "4" })).problem ?? "", /not finished within timeout/);
  assert.match((await probe({ status: "5" })).problem ?? "", /grpc probe failed: status 5/);
  assert.equal((await probe({ status: "0", body: Buffer.alloc(100_000) })).status, 500);
  assert.equal((await probe({ status: "0", body: Buffer.from([0, 0, 0, 0, 2, 255]) })).status, 500);
});

test("a gRPC probe of what speaks something else fails", async (t) => {
  const port = await serveApp(t, text("hello"));
  const { status } = await runProbe({ kind: "grpc", port, service: "", timeoutMs: 1000 }, requestOf({}), TARGET);
  assert.equal(status, 500);
});

test("parseAppProbes() refuses what cannot be read, with the JSON", () => {
  const path = "/app-health/a/livez";
  const prober = (value: unknown) => JSON.stringify({ [path]: value });
  for (const json of [
    "{",
    "[]",
    "7",
    '"x"',
    prober(7),
    prober([]),
    prober({ httpGet: 7 }),
    prober({ httpGet: [] }),
    prober({ httpGet: { port: 80, path: 7 } }),
    prober({ httpGet: { port: 80, scheme: {} } }),
    prober({ grpc: { port: 80, service: 7 } }),
    prober({ tcpSocket: { port: 80 }, timeoutSeconds: "5" }),
    prober({ tcpSocket: { port: 80 }, timeoutSeconds: 0.5 }),
    prober({ tcpSocket: { port: 80 }, timeoutSeconds: 2 ** 31 }),
    ...[80.5, {}, true, 2 ** 31, -(2 ** 31) - 1].map((port) => prober({ httpGet: { port } })),
    prober({ grpc: { port: "80" } }),
    prober({ httpGet: { host: 7 } }),
    prober({ tcpSocket: { host: 7 } }),
    ...[{}, "a", ["a"], [[]], [{ name: 7 }], [{ value: true }]].map((httpHeaders) =>
      prober({ httpGet: { httpHeaders } }),
    ),
  ]) {
    assert.throws(
      () => parseAppProbes(json),
      (error: Error) =>
        error.message.startsWith("failed to decode app prober err = ") &&
        error.message.endsWith(`, json string = ${json}`),
      json,
    );
  }
  for (const port of ["http", "80", ""])
    assert.throws(() => parseAppProbes(prober({ httpGet: { port } })), /the port must be int type/);
  for (const value of [null, {}, { exec: {} }, { httpGet: null }, { httpGet: { port: 1 }, tcpSocket: { port: 1 } }])
    assert.throws(() => parseAppProbes(prober(value)), /must be one of type httpGet, tcpSocket or gRPC/);
  for (const wrong of [
    "/app-health/a/other",
    "/app-health//livez",
    "/app-health/a/b/livez",
    "app-health/a/livez",
    "__proto__",
  ])
    assert.throws(
      () => parseAppProbes(`{${JSON.stringify(wrong)}:{"tcpSocket":{"port":1}}}`),
      /must be in form of regex pattern/,
      wrong,
    );
});

test("parseAppProbes() reads names of fields as Go does and has Kubernetes' defaults", () => {
  const probes = parseAppProbes(
    JSON.stringify({
      "/app-health/a/livez": { HTTPGET: { Port: 1 } },
      "/app-health/a/readyz": { httpGet: { port: 2, scheme: "HTTPS", path: "x" }, timeoutSeconds: 7, tcpSocket: null },
      "/app-health/a/startupz": { grpc: { port: 3, service: null } },
    }),
  );
  assert.deepEqual(Object.fromEntries(probes), {
    "/app-health/a/livez": { kind: "http", port: 1, path: "/", https: false, timeoutMs: undefined },
    "/app-health/a/readyz": { kind: "http", port: 2, path: "/x", https: true, timeoutMs: 7000 },
    "/app-health/a/startupz": { kind: "grpc", port: 3, service: "", timeoutMs: 1000 },
  });
  assert.equal(parseAppProbes("").size + parseAppProbes("null").size + parseAppProbes("{}").size, 0);
});

test("parseAppProbes() takes fields that are missing or null for empty ones, and such a probe fails", async () => {
  const path = "/app-health/a/livez";
  const nothing = { path: null, host: null, scheme: null, httpHeaders: null };
  for (const prober of [
    { httpGet: {} },
    { httpGet: { ...nothing, port: null } },
    { httpGet: { httpHeaders: [null, {}, { name: "a", value: null }] } },
    { tcpSocket: {} },
    { grpc: {} },
    { tcpSocket: { port: -1 } },
    { httpGet: { port: 2 ** 31 - 1 }, timeoutSeconds: -5 },
  ]) {
    const probe = parseAppProbes(JSON.stringify({ [path]: prober })).get(path);
    assert.ok(probe !== undefined);
    assert.equal((await runProbe(probe, requestOf({}), TARGET)).status, 500, JSON.stringify(prober));
  }
});

test("probes with kept connections use one again, and open another when the application closed it", async (t) => {
  let connections = 0;
  const app = createHttpServer((_, response) => response.end("ok"));
  app.on("connection", () => connections++);
  await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
  const { port } = app.address() as AddressInfo;
  const kept = new KeptConnections(TARGET.connect);
  t.after(() => {
    kept.close();
    app.close();
  });
  const target = { ...TARGET, kept };
  const probed = async () => (await runProbe(http(port), requestOf({}), target)).status;
  assert.deepEqual([await probed(), await probed()], [200, 200]);
  assert.equal(connections, 1);
  app.closeAllConnections();
  assert.equal(await probed(), 200);
  assert.equal(connections, 2);
  assert.equal((await runProbe(http(port), requestOf({}), TARGET)).status, 200);
  assert.equal(connections, 3);
});

test("probes with kept connections fail when nobody listens, and when nobody answers in time", async (t) => {
  const kept = new KeptConnections(TARGET.connect);
  t.after(() => kept.close());
  const [closed = 0] = await freePorts(1);
  const refused = await runProbe(http(closed), requestOf({}), { ...TARGET, kept });
  assert.match(refused.problem ?? "", /ECONNREFUSED/);
  const mute = createServer(() => undefined);
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  t.after(() => mute.close());
  const { port } = mute.address() as AddressInfo;
  for (const https of [false, true]) {
    const late = await runProbe({ ...http(port, "/", 30), https }, requestOf({}), { ...TARGET, kept });
    assert.match(late.problem ?? "", /no answer in 30 ms/);
  }
});

test("probeSource() is of the family of the host, whatever else the workload has; names are of that of localhost", () => {
  assert.equal(probeSource("10.0.0.1", "127.0.0.1"), "127.0.0.6");
  assert.equal(probeSource("fd00::1", "127.0.0.1"), "::6");
  assert.equal(probeSource("fd00::1", "::1"), "::6");
  assert.equal(probeSource("127.0.0.1", "::1"), "127.0.0.6");
  assert.equal(probeSource("localhost", "127.0.0.1"), "127.0.0.6");
  assert.equal(probeSource("localhost", "::1"), "::6");
});
