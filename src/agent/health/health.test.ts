import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer, type Server } from "node:net";
import { test } from "node:test";
import { Server as GrpcServer, ServerCredentials, type sendUnaryData } from "@grpc/grpc-js";
import { DEFAULT_PROXY_CONFIG, readProxyConfig } from "#config/proxy-config/proxy-config.ts";
import { SILENT } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import { freePort } from "../../../test/support/free-ports.ts";
import { RAW } from "../../../test/support/raw-messages.ts";
import { connectFrom } from "../status/probes/connect.ts";
import { type ProbeOptions, probe } from "./probe.ts";
import { type ProbeMethod, readinessProbe } from "./readiness-probe.ts";
import { type HealthState, HealthWatch } from "./workload-health.ts";

type Context = { after(fn: () => void): void };

const OPTIONS: ProbeOptions = { host: "127.0.0.1", timeoutMs: 2_000, connect: connectFrom("127.0.0.1"), enter: [] };

async function listen(t: Context, server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

const http = (port: number, more: Partial<Extract<ProbeMethod, { kind: "http" }>> = {}): ProbeMethod => ({
  kind: "http",
  host: "",
  port,
  path: "/",
  https: false,
  headers: [],
  ...more,
});

test("readinessProbe() fills in what Istio's agent would", async () => {
  const read = async (text: string) => {
    const { config } = await readProxyConfig({ environment: text });
    return config && readinessProbe(config);
  };
  assert.equal(readinessProbe(DEFAULT_PROXY_CONFIG), undefined);
  assert.deepEqual(await read('{"readinessProbe":{"httpGet":{"port":8080,"scheme":"HTTPS"}}}'), {
    initialDelayMs: 0,
    timeoutMs: 1_000,
    periodMs: 10_000,
    successThreshold: 1,
    failureThreshold: 1,
    method: { kind: "http", host: "", port: 8080, path: "/", https: true, headers: [] },
  });
  const full = await read(`
readinessProbe:
  initialDelaySeconds: 3
  timeoutSeconds: 2
  periodSeconds: 5
  successThreshold: 4
  failureThreshold: 6
  exec: {command: [cat, /tmp/ready]}`);
  assert.deepEqual(
    [full?.initialDelayMs, full?.timeoutMs, full?.periodMs, full?.successThreshold, full?.failureThreshold],
    [3_000, 2_000, 5_000, 4, 6],
  );
  assert.deepEqual(full?.method, { kind: "exec", command: ["cat", "/tmp/ready"] });
  assert.deepEqual((await read('{"readinessProbe":{"tcpSocket":{"port":1}}}'))?.method, {
    kind: "tcp",
    host: "",
    port: 1,
  });
  assert.deepEqual((await read('{"readinessProbe":{"grpc":{"port":2,"service":"s"}}}'))?.method, {
    kind: "grpc",
    port: 2,
    service: "s",
  });
});

test("probe() asks over HTTP with the given headers, and takes 200 to 399", async (t) => {
  const seen: unknown[] = [];
  const answer: RequestListener = ({ url = "", headers }, response) => {
    seen.push([url, headers.host, headers["user-agent"], headers["x-a"]]);
    const status = Number(url.slice(1, 4)) || 200;
    response.writeHead(status, url === "/302" ? { location: "/200-after" } : {}).end("body");
  };
  const port = await listen(t, createHttpServer(answer));
  const headers = [
    ["X-A", "1"],
    ["x-a", "2"],
    ["Host", "app.example"],
  ] as const;
  await probe(http(port, { path: "/200?q=1", headers }), OPTIONS);
  assert.deepEqual(seen, [["/200?q=1", "app.example", "istio-probe/1.0", "1, 2"]]);
  await probe(http(port, { path: "/302" }), OPTIONS);
  assert.deepEqual(seen.at(-1), ["/200-after", `127.0.0.1:${port}`, "istio-probe/1.0", undefined]);
  for (const path of ["/404", "/500"])
    await assert.rejects(probe(http(port, { path }), OPTIONS), /status code was not from \[200,400\), bad code/);
});

test("probe() follows redirects as far as Istio's agent does", async (t) => {
  const seen: unknown[] = [];
  const port: number = await listen(
    t,
    createHttpServer(({ url = "", headers }, response) => {
      seen.push([url, headers.host, headers["x-a"], headers.referer]);
      const location: Record<string, string> = {
        "/300": "/500",
        "/304": "/500",
        "/bad": "http://[::bad/",
        "/loop": "/loop",
        "/other": `http://127.0.0.1:${port}/200`,
      };
      response.writeHead(Number(url.slice(1, 4)) || 302, { location: location[url] ?? "" }).end();
    }),
  );
  for (const path of ["/300", "/304"]) await probe(http(port, { path }), OPTIONS);
  await assert.rejects(probe(http(port, { path: "/bad" }), OPTIONS), /failed to parse Location header/);
  await assert.rejects(probe(http(port, { path: "/loop" }), OPTIONS), /stopped after 10 redirects/);
  const headers = [
    ["Host", "app.example"],
    ["X-A", "1"],
  ] as const;
  await probe(http(port, { path: "/other", headers }), OPTIONS);
  assert.deepEqual(seen.at(-1), ["/200", `127.0.0.1:${port}`, "1", `http://127.0.0.1:${port}/other`]);
});

test("probe() asks the application, whatever its path says of another host", async (t) => {
  const seen: unknown[] = [];
  const port = await listen(
    t,
    createHttpServer(({ url }, response) => {
      seen.push(url);
      response.end();
    }),
  );
  for (const path of ["//else.example/a?b", "http://else.example:1/c", "d"]) await probe(http(port, { path }), OPTIONS);
  assert.deepEqual(seen, ["/a?b", "/c", "/d"]);
});

test("probe() asks over TLS whatever the certificate, and TCP, and gives up in time", async (t) => {
  const { key, cert } = await selfSigned();
  const secure = await listen(
    t,
    createHttpsServer({ key, cert }, (_, response) => void response.end()),
  );
  await probe(http(secure, { https: true }), OPTIONS);
  const silent = await listen(
    t,
    createServer((socket) => socket.on("error", () => undefined)),
  );
  await probe({ kind: "tcp", host: "", port: silent }, OPTIONS);
  await assert.rejects(probe(http(silent), { ...OPTIONS, timeoutMs: 50 }), /no answer in 50 ms/);
  const port = await freePort();
  for (const method of [http(port), { kind: "tcp", host: "", port }, { kind: "grpc", port, service: "" }] as const)
    await assert.rejects(probe(method, OPTIONS), (error) => /ECONNREFUSED/.test(errorText(error)));
});

test("probe() runs a command, and kills one that takes too long", async () => {
  await probe({ kind: "exec", command: ["true"] }, OPTIONS);
  for (const command of [["false"], ["/no/such/program"], []])
    await assert.rejects(probe({ kind: "exec", command }, OPTIONS), { code: "PROBE_FAILED" });
  await assert.rejects(
    probe({ kind: "exec", command: ["sleep", "30"] }, { ...OPTIONS, timeoutMs: 50 }),
    /no answer in 50 ms/,
  );
});

test("probe() asks the gRPC health service", async (t) => {
  const server = new GrpcServer();
  const path = "/grpc.health.v1.Health/Check";
  server.addService(
    { Check: { path, requestStream: false, responseStream: false, ...RAW } },
    {
      Check: ({ request }: { request: Buffer }, answer: sendUnaryData<Buffer>) => {
        const status = request.length === 0 ? 1 : 2;
        answer(null, Buffer.from(new MessageWriter().varint(1, status).finish()));
      },
    },
  );
  const port = await new Promise<number>((resolve) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (_, bound) => resolve(bound));
  });
  t.after(() => server.forceShutdown());
  await probe({ kind: "grpc", port, service: "" }, OPTIONS);
  await assert.rejects(probe({ kind: "grpc", port, service: "down" }, OPTIONS), /is not serving/);
});

test("HealthWatch changes its mind only after as many in a row as asked for", async () => {
  // `+` is a success, `-` a failure; the states follow each other as told.
  const script = [..."-+-++--+---++"];
  const states: (HealthState | undefined)[] = [];
  let at = 0;
  const stop = new AbortController();
  const watch = new HealthWatch({
    initialDelayMs: 0,
    periodMs: 0,
    successThreshold: 2,
    failureThreshold: 3,
    probe: async () => {
      const step = script[at++];
      if (step === undefined) stop.abort();
      if (step !== "+") throw new Error(`failure ${at}`);
    },
    log: SILENT,
  });
  watch.subscribe(() => states.push(watch.current));
  await watch.run(stop.signal);
  assert.deepEqual(states, [{ healthy: true }, { healthy: false, message: "failure 11" }, { healthy: true }]);
});

test("HealthWatch waits before the first probe and ends with its signal", async () => {
  const stop = new AbortController();
  let probes = 0;
  const probeOnce = async () => void probes++;
  const timing = { periodMs: 60_000, successThreshold: 1, failureThreshold: 1, log: SILENT };
  const late = new HealthWatch({ ...timing, initialDelayMs: 60_000, probe: probeOnce });
  const now = new HealthWatch({ ...timing, initialDelayMs: 0, probe: probeOnce });
  const running = Promise.all([late.run(stop.signal), now.run(stop.signal)]);
  await eventually("the first probe", () => now.current?.healthy === true);
  stop.abort();
  await running;
  assert.deepEqual([probes, late.current], [1, undefined]);
});

async function selfSigned(): Promise<{ key: string; cert: string }> {
  const { generateKeyPairSync } = await import("node:crypto");
  const { issueLeaf } = await import("#lib/pki/issue.ts");
  const { testRoot } = await import("../../../test/support/fake-control-plane.ts");
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 60_000) };
  const cert = await issueLeaf({ issuer: await testRoot(), publicKey, subjectAltNames: ["app.example"], ...validity });
  return { key: String(privateKey.export({ type: "pkcs8", format: "pem" })), cert };
}
