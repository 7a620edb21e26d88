import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { createLogger } from "#lib/log.ts";
import { eventually, freePorts } from "../../../test/support/fake-control-plane.ts";
import { fetchText } from "../http-client.ts";
import { agentMetrics } from "../metrics.ts";
import { parseAppProbes } from "./probes/parse.ts";
import { istioNames, parseScrapeTarget } from "./scrape.ts";
import { type StatusOptions, startStatusServer, statusHandler } from "./server.ts";

type Context = { after(fn: () => void): void };

function optionsOf(more: Partial<StatusOptions> = {}) {
  const lines: string[] = [];
  const metrics = agentMetrics();
  const log = createLogger({ write: (line) => lines.push(line) });
  const options: StatusOptions = {
    notReady: async () => undefined,
    probes: new Map(),
    probeTarget: { host: "127.0.0.1", localAddress: "127.0.0.1", statusPort: 15020 },
    scrape: { envoyPrometheusPort: 1, application: undefined, localhost: "127.0.0.1", metrics, log },
    nameTable: () => undefined,
    quit: () => undefined,
    drain: () => undefined,
    log,
    ...more,
  };
  return { options, lines, metrics };
}

async function serve(t: Context, options: StatusOptions) {
  const server = await startStatusServer(0, options);
  t.after(() => server.close());
  return (path: string, method = "GET") =>
    fetchText({ host: "127.0.0.1", port: server.port, path, method, timeoutMs: 5_000 });
}

async function application(t: Context, status: number, body: string, contentType = "text/plain"): Promise<number> {
  const [port = 0] = await freePorts(1);
  const server = createServer((_, response) => response.writeHead(status, { "content-type": contentType }).end(body));
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  t.after(() => server.close());
  return port;
}

test("/healthz/ready answers 503 with the reason in the log until it is ready, and says once that it is", async (t) => {
  let reason: string | undefined = "no certificate";
  const { options, lines } = optionsOf({ notReady: async () => reason });
  const get = await serve(t, options);
  assert.equal((await get("/healthz/ready")).status, 503);
  reason = undefined;
  assert.equal((await get("/healthz/ready")).status, 200);
  assert.equal((await get("/healthz/ready")).status, 200);
  assert.match(lines.join(""), /warn\tEnvoy proxy is NOT ready: no certificate\n/);
  assert.equal(lines.join("").match(/Envoy proxy is ready/g)?.length, 1);
});

test("/quitquitquit and /drain act on POST from the same machine only", async (t) => {
  const acted: string[] = [];
  const { options } = optionsOf({ quit: () => acted.push("quit"), drain: () => acted.push("drain") });
  const get = await serve(t, options);
  assert.equal((await get("/quitquitquit")).status, 405);
  assert.equal((await get("/quitquitquit", "POST")).body, "OK");
  assert.equal((await get("/drain", "POST")).status, 200);
  await eventually("both", () => acted.length === 2);
  const answer = await statusHandler(options)({
    method: "POST",
    path: "/quitquitquit",
    fromLoopback: false,
    headers: {},
  });
  assert.equal(answer.status, 403);
  assert.deepEqual(acted, ["quit", "drain"]);
});

test("/debug/ndsz shows the name table, and 404 while there is none", async (t) => {
  let table: string | undefined;
  const get = await serve(t, optionsOf({ nameTable: () => table }).options);
  assert.deepEqual([(await get("/debug/ndsz")).status, (await get("/debug/ndsz")).body], [404, "{}"]);
  table = '{"table":{}}';
  const { status, body, headers } = await get("/debug/ndsz");
  assert.deepEqual([status, body, headers["content-type"]], [200, table, "application/json"]);
});

test("unknown paths are 404, unknown probes 400", async (t) => {
  const get = await serve(t, optionsOf().options);
  assert.equal((await get("/nothing")).status, 404);
  assert.equal((await get("/app-health/x/livez")).status, 400);
});

test("/app-health passes status and body of the application on, and answers 500 when it does not answer", async (t) => {
  const port = await application(t, 418, "teapot");
  const [closed = 0] = await freePorts(1);
  const probes = parseAppProbes(
    JSON.stringify({
      "/app-health/app/livez": { httpGet: { port, path: "x" } },
      "/app-health/app/readyz": { httpGet: { port: closed } },
      "/app-health/app/startupz": { tcpSocket: { port: closed } },
      "/app-health/grpc/livez": { grpc: { port: closed } },
    }),
  );
  const { options, lines } = optionsOf({ probes });
  const get = await serve(t, options);
  const answer = await get("/app-health/app/livez");
  assert.deepEqual([answer.status, answer.body], [418, "teapot"]);
  for (const path of ["/app-health/app/readyz", "/app-health/app/startupz", "/app-health/grpc/livez"]) {
    assert.equal((await get(path)).status, 500, path);
  }
  assert.match(
    lines.join(""),
    /error\tprobes\tRequest to probe app failed: .*ECONNREFUSED.*\(\/app-health\/app\/readyz\)/,
  );
});

test("/app-health answers 500 when the application is too slow", async (t) => {
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const probes = new Map([
    ["/app-health/app/livez", { kind: "http", port, path: "/", https: false, timeoutMs: 50 } as const],
  ]);
  const get = await serve(t, optionsOf({ probes }).options);
  assert.equal((await get("/app-health/app/livez")).status, 500);
});

test("/stats/prometheus joins agent, Envoy and application, and drops Envoy's prefix from Istio's names", async (t) => {
  const { options } = optionsOf();
  const scrape = {
    ...options.scrape,
    envoyPrometheusPort: await application(
      t,
      200,
      "# TYPE envoy_istio_requests_total counter\nenvoy_istio_requests_total{} 1\nenvoy_server_live{} 1\n",
    ),
    application: { port: await application(t, 200, "app_metric 1\n"), path: "/metrics" },
  };
  const { body, headers } = await (await serve(t, { ...options, scrape }))("/stats/prometheus");
  assert.match(body, /istio_agent_scrapes_total 1\n/);
  assert.match(
    body,
    /\n# TYPE istio_requests_total counter\nistio_requests_total{} 1\nenvoy_server_live{} 1\napp_metric 1\n$/,
  );
  assert.equal(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
});

test("/stats/prometheus gives what can be had when Envoy or the application fail", async (t) => {
  const { options, lines, metrics } = optionsOf();
  const [closed = 0] = await freePorts(1);
  const scrape = {
    ...options.scrape,
    envoyPrometheusPort: closed,
    application: { port: await application(t, 500, "no"), path: "/" },
  };
  const { status, body } = await (await serve(t, { ...options, scrape }))("/metrics");
  assert.equal(status, 200);
  assert.match(body, /istio_agent_process_resident_memory_bytes \d+/);
  assert.match(lines.join(""), /failed scraping envoy metrics: .*ECONNREFUSED/);
  assert.match(lines.join(""), /failed scraping application metrics: .* answered 500/);
  assert.match(
    metrics.text(),
    /scrape_failures_total{type="envoy"} 1\n.*scrape_failures_total{type="application"} 1\n/,
  );
});

test("istioNames() works across any cut of the text", async () => {
  const text = "# HELP envoy_istio_x y\nenvoy_istio_x 1\nenvoy_other_envoy_istio_ 2\nenvoy_istio_last 3";
  for (let size = 1; size < 30; size++) {
    const chunks = (async function* () {
      for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
    })();
    let result = "";
    for await (const part of istioNames(chunks)) result += part;
    assert.equal(result, "# HELP istio_x y\nistio_x 1\nenvoy_other_envoy_istio_ 2\nistio_last 3");
  }
});

test("parseScrapeTarget() has Prometheus' defaults and refuses what cannot work", () => {
  assert.deepEqual(parseScrapeTarget("{}", 15020), { port: 80, path: "/metrics" });
  assert.deepEqual(parseScrapeTarget('{"scrape":"true","path":"/m","port":"9090"}', 15020), { port: 9090, path: "/m" });
  assert.equal(parseScrapeTarget('{"scrape":"false"}', 15020), undefined);
  assert.throws(() => parseScrapeTarget("{", 15020), /failed to unmarshal ISTIO_PROMETHEUS_ANNOTATIONS/);
  assert.throws(() => parseScrapeTarget('{"port":"http"}', 15020), /must be a port from 1 to 65535, not "http"/);
  assert.throws(() => parseScrapeTarget('{"port":"15020"}', 15020), /recursive loop/);
});

test("startStatusServer() says that the port is taken", async (t) => {
  const first = await startStatusServer(0, optionsOf().options);
  t.after(() => first.close());
  await assert.rejects(startStatusServer(first.port, optionsOf().options), {
    code: "STATUS_PORT_NOT_OPENED",
    message: `Cannot open status port ${first.port}`,
  });
});
