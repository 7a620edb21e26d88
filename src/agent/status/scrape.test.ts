import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, type RequestListener, request, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { issueLeaf, issueRoot } from "#lib/pki/issue.ts";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import { freePorts } from "../../../test/support/free-ports.ts";
import { send } from "../http-client.ts";
import { negotiateFormat } from "./scrape.ts";
import { type Context, serveApp, serveStatus, statusOptions, text } from "./status-fixture.ts";

interface Targets {
  readonly envoy?: RequestListener;
  readonly app?: RequestListener;
}

async function serveScrapes(t: Context, { envoy = text("envoy_x 1\n"), app }: Targets) {
  const { options, lines, metrics } = statusOptions();
  const scrape = {
    ...options.scrape,
    envoyPrometheusPort: await serveApp(t, envoy),
    application: app === undefined ? undefined : { port: await serveApp(t, app), path: "/metrics", https: false },
  };
  return { ...(await serveStatus(t, { ...options, scrape })), lines, metrics, options, scrape };
}

/** What a scraper sends that has this many seconds. */
const patience = (seconds: number) => ({ headers: { "x-prometheus-scrape-timeout-seconds": String(seconds) } });

test("/stats/prometheus joins agent, Envoy and application, and drops Envoy's prefix from Istio's names", async (t) => {
  const envoy = "# TYPE envoy_istio_requests_total counter\nenvoy_istio_requests_total{} 1\nenvoy_server_live{} 1\n";
  const { get } = await serveScrapes(t, { envoy: text(envoy), app: text("app_metric 1\n") });
  const { body, headers } = await get("/stats/prometheus");
  assert.match(body, /istio_agent_scrapes_total 1\n/);
  assert.match(
    body,
    /\n# TYPE istio_requests_total counter\nistio_requests_total{} 1\nenvoy_server_live{} 1\napp_metric 1\n$/,
  );
  assert.equal(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
});

test("families that several sources have are given as they are, as Istio does", async (t) => {
  const { get } = await serveScrapes(t, { envoy: text("same 1\n"), app: text("same 2\n") });
  assert.match((await get("/metrics")).body, /same 1\nsame 2\n$/);
});

test("a scraper's wishes reach the sources, but never that for protobuf, and Envoy gets its query", async (t) => {
  const seen: Record<string, IncomingMessage> = {};
  const record =
    (name: string): RequestListener =>
    (incoming, response) => {
      seen[name] = incoming;
      response.end();
    };
  const { get } = await serveScrapes(t, { envoy: record("envoy"), app: record("app") });
  const accept =
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,application/openmetrics-text;q=0.6,text/plain;q=0.5";
  await get("/stats/prometheus?usedonly", {
    headers: { ...patience(7).headers, accept, "user-agent": "Prometheus/3" },
  });
  for (const incoming of Object.values(seen)) {
    assert.equal(incoming.headers.accept, "application/openmetrics-text;q=0.6,text/plain;q=0.5");
    assert.equal(incoming.headers["user-agent"], "Prometheus/3");
    assert.equal(incoming.headers["x-prometheus-scrape-timeout-seconds"], "7");
  }
  assert.deepEqual([seen.envoy?.url, seen.app?.url], ["/stats/prometheus?usedonly", "/metrics"]);
  await get("/metrics", { headers: { accept: "application/vnd.google.protobuf" } });
  assert.equal(seen.envoy?.headers.accept, undefined);
});

test("metrics that an application compresses unasked are unpacked, and encodings that nobody reads are left out", async (t) => {
  const many = Array.from({ length: 50_000 }, (_, index) => `app_metric{index="${index}"} 1\n`).join("");
  const whole = gzipSync(many);
  const answer = async (app: RequestListener) => (await (await serveScrapes(t, { app })).get("/stats/prometheus")).body;
  const exact =
    (encoding: string, bytes: Buffer): RequestListener =>
    (_, response) =>
      response.writeHead(200, { "content-encoding": encoding }).end(bytes);
  assert.ok((await answer(exact("GZIP", whole))).endsWith(`envoy_x 1\n${many}`));
  assert.match(await answer(exact("br", Buffer.from([1, 2, 3]))), /envoy_x 1\n$/);
  assert.match(await answer(exact("gzip", Buffer.from("no gzip"))), /envoy_x 1\n$/);
  // Broken off: whole lines of what had come.
  assert.match(
    await answer(exact("gzip", whole.subarray(0, whole.length >> 1))),
    /envoy_x 1\n(?:app_metric{index="\d+"} 1\n)*$/,
  );
});

test("what can be had is given when Envoy or the application fail", async (t) => {
  const { lines, metrics, options } = await serveScrapes(t, {});
  const [closed = 0] = await freePorts(1);
  const application = { port: await serveApp(t, text("no", "text/plain", 500)), path: "/", https: false };
  const scrape = { ...options.scrape, envoyPrometheusPort: closed, application };
  const { get } = await serveStatus(t, { ...options, scrape });
  const { status, body } = await get("/metrics");
  assert.equal(status, 200);
  assert.match(body, /istio_agent_process_resident_memory_bytes \d+/);
  assert.match(lines.join(""), /failed scraping envoy metrics: .*ECONNREFUSED/);
  assert.match(lines.join(""), /failed scraping application metrics: .* answered 500/);
  assert.match(
    metrics.text(),
    /scrape_failures_total{type="envoy"} 1\n.*scrape_failures_total{type="application"} 1\n/,
  );
});

test("a source that never answers costs neither the other nor the scraper's time", async (t) => {
  const hanging: RequestListener = () => undefined;
  const first = await serveScrapes(t, { envoy: hanging, app: text("app 1\n") });
  assert.match((await first.get("/metrics", patience(3))).body, /\napp 1\n$/);
  assert.match(first.lines.join(""), /failed scraping envoy metrics: GET .* no answer in 2250 ms/);
  const second = await serveScrapes(t, { app: hanging });
  assert.match((await second.get("/metrics", patience(3))).body, /\nenvoy_x 1\n$/);
});

test("a scraper that does not say how long it waits gets what comes late, and not for ever nothing", async (t) => {
  let asked = Promise.withResolvers<ServerResponse>();
  const { port, lines } = await serveScrapes(t, { app: (_, response) => asked.resolve(response) });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const scrape = async () => {
    const scraper = request({ host: "127.0.0.1", port, path: "/metrics" }).end();
    const [response] = (await once(scraper, "response")) as [IncomingMessage];
    return (await response.setEncoding("utf8").toArray()).join("");
  };
  const late = scrape();
  const response = await asked.promise;
  t.mock.timers.tick(120_000);
  response.end("app 1\n");
  assert.match(await late, /\nenvoy_x 1\napp 1\n$/);
  asked = Promise.withResolvers();
  const never = scrape();
  await asked.promise;
  t.mock.timers.tick(600_000);
  assert.doesNotMatch(await never, /app 1/);
  assert.match(lines.join(""), /failed scraping application metrics: GET .* no answer in /);
});

test("an application that takes most of the scraper's time, at once or in between, is waited for", async (t) => {
  const asked = Promise.withResolvers<ServerResponse>();
  const { port, lines } = await serveScrapes(t, { app: (_, response) => asked.resolve(response) });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const scraper = request({ host: "127.0.0.1", port, path: "/metrics", ...patience(10) }).end();
  const response = await asked.promise;
  t.mock.timers.tick(5_000);
  response.write("app 1\n");
  const [answer] = (await once(scraper, "response")) as [IncomingMessage];
  let body = "";
  answer.setEncoding("utf8").on("data", (chunk) => {
    body += chunk;
  });
  while (!body.endsWith("\napp 1\n") && !answer.readableEnded) await new Promise(setImmediate);
  t.mock.timers.tick(4_000);
  response.end("app 2\n");
  if (!answer.readableEnded) await once(answer, "end");
  assert.match(body, /\nenvoy_x 1\napp 1\napp 2\n$/);
  assert.doesNotMatch(lines.join(""), /failed scraping|ended early/);
});

test("a source that falls silent in the middle is cut after its last whole line", async (t) => {
  const silent: RequestListener = (_, response) => void response.write("envoy_x 1\nenvoy_half{a=");
  const { get, lines, metrics } = await serveScrapes(t, { envoy: silent, app: text("app 1\n") });
  assert.match((await get("/metrics", patience(3))).body, /\nenvoy_x 1\napp 1\n$/);
  assert.match(lines.join(""), /metrics of envoy ended early: GET .*: nothing more in 900 ms/);
  assert.match(metrics.text(), /scrape_failures_total{type="envoy"} 1\n/);
});

test("megabytes reach a slow scraper unchanged, with and without a length", async (t) => {
  const lines = Array.from({ length: 100_000 }, (_, i) => `app_requests_total{path="/item/${i}"} ${i}\n`).join("");
  const inChunks: RequestListener = (_, response) => {
    for (let at = 0; at < lines.length; at += 100_001) response.write(lines.slice(at, at + 100_001));
    response.end();
  };
  for (const app of [text(lines), inChunks]) {
    const { port } = await serveScrapes(t, { app });
    const response = await send({ host: "127.0.0.1", port, path: "/metrics", timeoutMs: 10_000 });
    let received = "";
    for await (const chunk of response.setEncoding("utf8")) {
      received += chunk;
      if (received.length < 2_000_000) await new Promise((resolve) => setTimeout(resolve, 2));
    }
    assert.ok(received.endsWith(`\nenvoy_x 1\n${lines}`));
  }
});

test("an application that speaks no HTTP is left out", async (t) => {
  const server = createServer((socket) => socket.end("SSH-2.0-OpenSSH\r\n")).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { options, lines } = statusOptions();
  const application = { port: (server.address() as AddressInfo).port, path: "/metrics", https: false };
  const { get } = await serveStatus(t, { ...options, scrape: { ...options.scrape, application } });
  assert.equal((await get("/metrics")).status, 200);
  assert.match(lines.join(""), /failed scraping application metrics: .*"SSH-2\.0-OpenSSH" instead of a status/);
});

test("a source that falls silent after its scraper was slow is cut as well", async (t) => {
  const pauses: RequestListener = (_, response) => void response.write("envoy_x 1\n".repeat(1_000_000));
  const { port, lines } = await serveScrapes(t, { envoy: pauses, app: text("app 1\n") });
  const response = await send({ host: "127.0.0.1", port, path: "/metrics", timeoutMs: 10_000, ...patience(5) });
  await new Promise((resolve) => setTimeout(resolve, 400));
  assert.doesNotMatch(lines.join(""), /ended early/);
  let end = "";
  for await (const chunk of response.setEncoding("utf8")) end = (end + chunk).slice(-100);
  assert.ok(end.endsWith("\nenvoy_x 1\napp 1\n"));
  assert.match(lines.join(""), /metrics of envoy ended early: GET .*: n(othing more|o answer) in /);
});

test("a source that streams for ever is cut while the other still has time", async (t) => {
  const endless: RequestListener = (_, response) => {
    const write = () => {
      while (!response.destroyed && response.write("envoy_x 1\n".repeat(1000)));
    };
    response.on("drain", write);
    write();
  };
  const { get, lines } = await serveScrapes(t, { envoy: endless, app: text("app 1\n") });
  const { body } = await get("/metrics", patience(1));
  assert.ok(body.endsWith("\nenvoy_x 1\napp 1\n"));
  assert.match(lines.join(""), /metrics of envoy ended early: GET .*: no answer in 850 ms/);
});

test("OpenMetrics of an application that breaks off still end as they must", async (t) => {
  const breaking: RequestListener = (_, response) => {
    response.writeHead(200, { "content-type": "application/openmetrics-text; version=1.0.0" });
    response.write("app 1\napp_half", () => response.destroy());
  };
  const { get } = await serveScrapes(t, { app: breaking });
  const { body, headers } = await get("/metrics");
  assert.match(body, /\napp 1\n# EOF\n$/);
  assert.equal(headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8");
});

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === "::1"),
);

test("an application may listen on either loopback address, and is asked as localhost", async (t) => {
  const app: RequestListener = ({ headers }, response) => response.end(`app{host="${headers.host}"} 1\n`);
  for (const host of hasIpv6 ? ["127.0.0.1", "::1"] : ["127.0.0.1"]) {
    const port = await serveApp(t, app, host);
    const { options } = statusOptions();
    const scrape = { ...options.scrape, application: { port, path: "/metrics", https: false } };
    const { get } = await serveStatus(t, { ...options, scrape });
    assert.match((await get("/metrics")).body, new RegExp(`\napp{host="localhost:${port}"} 1\n$`));
  }
});

test("redirects of an application are followed on the same host, and not for ever", async (t) => {
  const app: RequestListener = (incoming, response) => {
    const to = { "/metrics": "/other", "/loop": "/loop", "/away": "http://192.0.2.1/metrics" }[incoming.url ?? ""];
    if (to === undefined) response.end("app 1\n");
    else response.writeHead(302, { location: to }).end();
  };
  const { get, options, scrape, lines } = await serveScrapes(t, { app });
  assert.match((await get("/metrics")).body, /\napp 1\n$/);
  for (const path of ["/loop", "/away"]) {
    const application = { port: scrape.application?.port ?? 0, path, https: false };
    const other = await serveStatus(t, { ...options, scrape: { ...scrape, application } });
    assert.match((await other.get("/metrics")).body, /\nenvoy_x 1\n$/);
    assert.match(lines.join(""), new RegExp(`${path} answered 302`));
  }
});

test("an application is scraped over HTTPS, whoever signed its certificate", async (t) => {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
  const issuer = await issueRoot({ organization: "test", keyKind: "P-256", ...validity });
  const cert = await issueLeaf({ issuer, publicKey, subjectAltNames: ["app"], ...validity });
  const server = createSecureServer(
    { cert, key: privateKey.export({ type: "pkcs8", format: "pem" }) },
    text("app 1\n"),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { options } = statusOptions();
  const application = { port: (server.address() as AddressInfo).port, path: "/metrics", https: true };
  const { get } = await serveStatus(t, { ...options, scrape: { ...options.scrape, application } });
  assert.match((await get("/metrics")).body, /\napp 1\n$/);
});

test("a scrape that its scraper leaves is given up at its sources", async (t) => {
  let ended = false;
  const endless: RequestListener = (_, response) => {
    const timer = setInterval(() => response.write("envoy_x 1\n"), 1);
    response.on("close", () => {
      clearInterval(timer);
      ended = true;
    });
  };
  const { port } = await serveScrapes(t, { envoy: endless });
  const scraper = request({ host: "127.0.0.1", port, path: "/metrics" }).end();
  const [response] = await once(scraper, "response");
  await once(response, "data");
  scraper.destroy();
  await eventually("end at the source", () => ended, 2_000);
});

test("negotiateFormat() knows OpenMetrics however it is written", () => {
  const openMetrics = (version: string) => `application/openmetrics-text; version=${version}; charset=utf-8`;
  assert.equal(negotiateFormat("application/openmetrics-text"), openMetrics("0.0.1"));
  assert.equal(negotiateFormat('Application/OpenMetrics-Text;charset=utf-8;version="1.0.0"'), openMetrics("1.0.0"));
  for (const other of ["", "text/plain", "application/openmetrics-text; version=9", "application/openmetrics-textual"])
    assert.equal(negotiateFormat(other), "text/plain; version=0.0.4; charset=utf-8", other);
});

test("a wrong time limit of a scraper is reported and not followed", async (t) => {
  const { get, lines } = await serveScrapes(t, {});
  for (const seconds of ["soon", "-1", "Infinity"])
    assert.match(
      (await get("/metrics", { headers: { "x-prometheus-scrape-timeout-seconds": seconds } })).body,
      /envoy_x 1\n$/,
    );
  assert.equal(lines.join("").match(/Failed to parse timeout header/g)?.length, 3);
});
