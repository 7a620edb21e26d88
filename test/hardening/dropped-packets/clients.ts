/**
 * Runs inside a network namespace whose firewall drops packets, and calls a server there with every client that Mizzen has.
 * Prints one JSON object: by client, the time until it first reports the failure, and its words.
 *
 * Usage: clients.ts SILENT VANISHING...: an address whose packets are dropped, and three whose packets this program drops later.
 * The file of host names belongs to the namespace.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { Server } from "node:net";
import { fetchText } from "#agent/http-client.ts";
import { agentMetrics } from "#agent/metrics.ts";
import { askMetadata } from "#agent/platform/metadata-client.ts";
import { citadelClient } from "#agent/sds/ca/ca-client.ts";
import type { CaClientInput } from "#agent/sds/ca/ca-connection.ts";
import { googleCaClient } from "#agent/sds/ca/google-ca-client.ts";
import { googleCasClient } from "#agent/sds/ca/google-cas-client.ts";
import type { Sign } from "#agent/sds/sign.ts";
import { connectFrom } from "#agent/status/probes/connect.ts";
import { openAnswer } from "#agent/status/streamed-answer.ts";
import { federatedToken } from "#agent/sts/federated-token.ts";
import { offerOf } from "#agent/wasm/fetch-module.ts";
import { Connections } from "#agent/xds-proxy/connections.ts";
import { fetchJson } from "#authn/fetch-json.ts";
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { type ConnectOptions, connectGrpc } from "#lib/grpc/connect.ts";
import { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { follow } from "#lib/kubernetes/follow.ts";
import { createLogger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { ProxyEnvironment } from "#lib/net/environment-proxy.ts";
import { requestText } from "#lib/net/http-text.ts";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import { fetchKeySet } from "#sources/jwks/fetch-keys.ts";
import { deltaRequest, setUp } from "../../support/xds-proxy-rig.ts";

const [, , silent = "", pinged = "", probed = "", watched = ""] = process.argv;
const PORT = 15_012;
/** Longer than any client may take: whatever limits it is its connection. */
const LONG_MS = 60_000;
/** Until what was sent is acknowledged: what is not is sent again for minutes, without probes. */
const SETTLED_MS = 500;
const NO_REPORT_MS = 30_000;
const ended = new AbortController();
const t = { after: (fn: () => void) => ended.signal.addEventListener("abort", fn) };
const quiet = createLogger({ write: () => undefined });

const CLIENTS: Readonly<Record<string, () => Promise<string>>> = {
  xds: async () => {
    const { log, line } = firstLine();
    const { envoy, metrics } = await setUp(t, { upstream: upstream(`${silent}:${PORT}`), log });
    envoy().write(deltaRequest(CLUSTER_TYPE));
    const text = await line;
    return `${text}${/^istio_agent_istiod_connection_failures .*$/m.exec(metrics.text())?.[0]}`;
  },
  grpcProxy: () =>
    failureOf(
      connectGrpc(
        { ...grpcOptions("istiod.test:15012"), proxy: `http://${silent}:${PORT}` },
        AbortSignal.timeout(LONG_MS),
      ),
    ),
  istiodCa: () => caFailure((input) => citadelClient(input, "")),
  googleCa: () => caFailure((input) => googleCaClient(input, "")),
  googleCas: () => caFailure((input) => googleCasClient(input, "")),
  kubernetes: () => failureOf(kubernetes(silent).call({ path: "/api" })),
  kubernetesProxy: () =>
    failureOf(kubernetes("192.0.2.1", { proxy: `http://${silent}:${PORT}` }).call({ path: "/api" })),
  kubernetesList: () => followed(kubernetes(silent)),
  wasmProxy: () => module("https://192.0.2.1/plugin.wasm", { HTTPS_PROXY: `http://${silent}:${PORT}` }),
  jwks: () => {
    const address = { id: `https://${silent}/keys`, discovers: false, timeoutMs: LONG_MS };
    const rules = {
      allowLocal: false,
      allowedRanges: [],
      blockedRanges: [],
      insecure: false,
      extraRoots: [],
      clusterDomain: "cluster.local",
    };
    return failureOf(fetchKeySet(address, rules, ended.signal));
  },
  tokenIssuer: () => failureOf(fetchJson(`https://${silent}/keys`)),
  oci: () => module(`oci://${silent}/plugin:v1`),
  wasmOverHttp: () => module(`http://${silent}/plugin.wasm`),
  sts: () => {
    const exchange = federatedToken({ endpoint: `https://${silent}/token`, trustDomain: "td", provider: "p" });
    return failureOf(exchange({ subjectToken: "token" }));
  },
  metadata: () => failureOf(askMetadata({ url: `http://${silent}/`, timeoutMs: 5_000 })),
  pages: () => failureOf(requestText(`http://${silent}:${PORT}/debug/syncz`, { timeoutMs: LONG_MS })),
  admin: () => failureOf(fetchText({ host: silent, port: PORT, path: "/", timeoutMs: 3_000 })),
  scrape: () => failureOf(openAnswer({ host: silent, port: PORT, path: "/", timeoutMs: 3_000 })),
  secureScrape: () => failureOf(openAnswer({ host: silent, port: PORT, path: "/", timeoutMs: 3_000, https: true })),
  probe: () => failureOf(connectFrom("127.0.0.6")({ host: silent, port: PORT }, AbortSignal.timeout(3_000))),
  repointedName: async () => {
    const port = await listen(createHttp2Server(), "127.0.0.1");
    writeFileSync("/etc/hosts", `${silent} istiod.test\n`);
    const connections = new Connections(upstream(`istiod.test:${port}`), () => undefined);
    setTimeout(() => writeFileSync("/etc/hosts", "127.0.0.1 istiod.test\n"), 1_000);
    const first = await failureOf(connections.take(ended.signal));
    const connection = await connections.take(ended.signal);
    connection.close();
    return `${first}, then connected`;
  },
  vanishedXds: () => vanishedXds(pinged, { keepalive: { intervalMs: 1_000, timeoutMs: 1_000 } }),
  vanishedSilentXds: () => vanishedXds(probed, { probeAfterMs: 1_000 }),
  vanishedWatch: async () => {
    const server = createServer((request, response) => {
      if (request.url?.includes("watch=true")) {
        response.writeHead(200).flushHeaders();
        setTimeout(() => vanish(watched), SETTLED_MS);
      } else response.end('{"metadata": {"resourceVersion": "1"}, "items": []}');
    });
    const port = await listen(server, watched);
    const api = kubernetes(watched, { port, keepaliveMs: 1_000 });
    return followed(api);
  },
};

const upstream = (address: string) => ({
  address,
  rootCertificate: undefined,
  subjectAltName: "",
  headers: {},
  fetchToken: async () => "token",
});

function grpcOptions(address: string) {
  return { address, windowBytes: 65_536, keepalive: { intervalMs: LONG_MS, timeoutMs: LONG_MS } };
}

/** The first warning or error that a client logs. */
function firstLine() {
  const { promise, resolve } = Promise.withResolvers<string>();
  const write = (line: string) => {
    if (/\t(warn|error)\t/.test(line)) resolve(line);
  };
  return { log: createLogger({ write }), line: promise };
}

async function failureOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
    return "no failure";
  } catch (thrown) {
    return errorText(thrown);
  }
}

/** The first of several attempts. */
function caFailure(client: (input: CaClientInput) => Sign): Promise<string> {
  const { log, line } = firstLine();
  const sign = client({ upstream: upstream(`${silent}:${PORT}`), log, retries: agentMetrics().signRetries });
  sign({ csr: "", ttlSeconds: 60 }, ended.signal).catch(() => undefined);
  return line;
}

function kubernetes(
  host: string,
  { port = 6443, proxy, keepaliveMs }: { port?: number; proxy?: string; keepaliveMs?: number } = {},
): KubernetesApi {
  const server = `${port === 6443 ? "https" : "http"}://${host}:${port}`;
  const access = { server, proxy, namespace: "default", credentials: async () => ({}) };
  return new KubernetesApi(access, { answerMs: LONG_MS, ...(keepaliveMs !== undefined && { keepaliveMs }) });
}

/** How a call ends whose server vanishes. */
async function vanishedXds(host: string, options: Partial<ConnectOptions>): Promise<string> {
  const port = await listen(createHttp2Server(), host);
  const connection = await connectGrpc({ ...grpcOptions(`${host}:${port}`), ...options }, ended.signal);
  const status = new Promise<string>((resolve) => {
    connection.call("/x/y", {}, { message: () => undefined, end: ({ details }) => resolve(details) });
  });
  await sleep(SETTLED_MS, ended.signal);
  vanish(host);
  return status;
}

/** What a follower of services is told first. */
function followed(api: KubernetesApi): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const follower = {
    replace: async () => undefined,
    put: () => undefined,
    remove: () => undefined,
    trouble: (problem: unknown) => {
      if (problem !== undefined) resolve(errorText(problem));
    },
  };
  const type = { group: "", version: "v1", kind: "Service", plural: "services", namespaced: true };
  const backoff = new Backoff({ initialMs: 100, maxMs: 1_000 });
  void follow({ api, type, follower, backoff, signal: ended.signal });
  return promise;
}

function module(url: string, proxies: ProxyEnvironment = {}): Promise<string> {
  const wanted = {
    url,
    checksum: "",
    timeoutMs: LONG_MS,
    pullSecret: undefined,
    pullPolicy: "Always" as const,
    resourceName: "x",
    resourceVersion: "1",
  };
  const options = {
    insecureHosts: [],
    allowLocal: false,
    allowedRanges: [],
    clusterDomain: "cluster.local",
    httpTimeoutMs: LONG_MS,
    httpAttempts: 1,
    dockerConfigFolder: "/nowhere",
    proxies,
    log: quiet,
  };
  return failureOf(offerOf(wanted, options, AbortSignal.timeout(LONG_MS)));
}

async function listen(server: Server, host: string): Promise<number> {
  server.listen(0, host);
  await once(server, "listening");
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** From now on the firewall drops packets to an address, and tells their senders nothing. */
function vanish(host: string): void {
  execFileSync("nft", ["add", "rule", "inet", "filter", "input", "ip", "daddr", host, "drop"]);
}

const reports = await Promise.all(
  Object.entries(CLIENTS).map(async ([name, run]) => {
    const start = performance.now();
    const text = await Promise.race([run(), sleep(NO_REPORT_MS, ended.signal).then(() => "no report")]);
    return [name, { ms: Math.round(performance.now() - start), text }] as const;
  }),
);
console.log(JSON.stringify(Object.fromEntries(reports)));
process.exit(0);
