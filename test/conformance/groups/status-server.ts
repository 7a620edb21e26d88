/** The agent's status port: probes of the application, merged metrics, readiness, the way to end. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { isLoopback } from "#agent/limits/loopback.ts";
import { agentMetrics } from "#agent/metrics.ts";
import type { IncomingRequest } from "#agent/status/answer.ts";
import { configProblem, serverProblem } from "#agent/status/envoy-readiness.ts";
import { connectFrom } from "#agent/status/probes/connect.ts";
import { parseAppProbes } from "#agent/status/probes/parse.ts";
import { negotiateFormat } from "#agent/status/scrape.ts";
import { type StatusOptions, startStatusServer, statusHandler } from "#agent/status/server.ts";
import { SILENT } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { compareJson } from "../compare.ts";
import { type Case, type Group, type Outcome, readJson } from "../harness.ts";
import {
  type Application,
  startApplication,
  startGrpcApplication,
  startSecureApplication,
} from "./status-application.ts";

interface StatusCase {
  readonly kind: keyof typeof KINDS;
  readonly name: string;
  readonly request: string;
  readonly kubeAppProbers: unknown;
  readonly podIP: string;
  readonly ipv6: boolean;
  readonly expectedStatus: number;
  readonly expected: number | string;
  readonly alpns?: readonly string[];
  readonly probePath: string;
  readonly statusCode: number;
  readonly expectedProtocol: string;
  readonly originHeaders: Readonly<Record<string, string[]>>;
  readonly want: Readonly<Record<string, string[]>>;
  readonly errorContains: string | null;
  readonly method: string;
  readonly remoteAddr: string;
  readonly app: string;
  readonly envoy: string;
  readonly bodyContains: string;
  readonly accept: string;
  readonly endsWithEOF: boolean;
  readonly recordedContentType: string;
  readonly contentType: string;
  readonly statsText: string;
}

interface Data {
  readonly cases: readonly StatusCase[];
  readonly grpcProbers: unknown;
}

export const statusServer: Group = {
  name: "agent status server",
  cases: async (folder) => {
    const data = await readJson<Data>(folder, "pilot/cmd/pilot-agent/status/cases.json");
    return (data?.cases ?? []).map((one): Case => ({ name: one.name, check: () => checkKind(one, data as Data) }));
  },
};

const KINDS = {
  appProbe: checkAppProbe,
  grpcProbe: checkGrpcProbe,
  httpsProbe: checkHttpsProbe,
  probeHeader: checkProbeHeader,
  parseProbers: checkParse,
  quitquitquit: checkQuit,
  statsMerge: checkMerge,
  statsContentType: checkContentType,
  negotiateFormat: async ({ contentType, expected }: StatusCase) => compareJson(negotiateFormat(contentType), expected),
  envoyReadiness: checkReadiness,
};

function checkKind(one: StatusCase, data: Data): Promise<Outcome> {
  const check = KINDS[one.kind];
  if (check === undefined) return Promise.resolve({ leftOut: `cases of kind ${one.kind}` });
  return check(one, data);
}

function optionsOf(probers: string, more: Partial<StatusOptions> = {}): StatusOptions {
  const metrics = agentMetrics();
  return {
    waiting: async () => [],
    probes: parseAppProbes(probers),
    probeTarget: { host: "127.0.0.1", connect: connectFrom("127.0.0.1"), statusPort: 15020, http2: true },
    scrape: {
      envoyPrometheusPort: 1,
      application: undefined,
      localhost: "127.0.0.1",
      connect: undefined,
      metrics,
      log: SILENT,
    },
    metricsOnLoopbackOnly: false,
    enders: "everybody",
    failed: () => undefined,
    nameTable: () => undefined,
    quit: () => undefined,
    drain: () => undefined,
    log: SILENT,
    ...more,
  };
}

const get = (path: string, headers: IncomingRequest["headers"] = {}): IncomingRequest => ({
  method: "GET",
  path,
  query: "",
  peer: "127.0.0.1",
  fromLoopback: true,
  callerAccount: async () => undefined,
  headers,
  signal: new AbortController().signal,
  cut: () => undefined,
});

/** Probers with the port of the application in place of `$APP_PORT`. */
function withPort(probers: unknown, port: number): string {
  return JSON.stringify(probers).replaceAll('"$APP_PORT"', String(port));
}

async function checkAppProbe({
  kubeAppProbers,
  podIP,
  ipv6,
  request: line,
  expectedStatus,
}: StatusCase): Promise<Outcome> {
  if (ipv6) return { leftOut: "probes over IPv6, for which loopback has no second address" };
  const app = await startApplication();
  try {
    const host = podIP === "" ? "127.0.0.1" : podIP;
    const target = { host, connect: connectFrom("127.0.0.6"), statusPort: 15020, http2: true };
    const handle = statusHandler(optionsOf(withPort(kubeAppProbers, app.port), { probeTarget: target }));
    const answer = await handle(get(line.split(" ")[1] ?? ""));
    return compareJson(answer.status, expectedStatus);
  } finally {
    app.close();
  }
}

async function checkGrpcProbe({ request: line, expectedStatus }: StatusCase, { grpcProbers }: Data): Promise<Outcome> {
  const app = await startGrpcApplication();
  try {
    const handle = statusHandler(optionsOf(withPort(grpcProbers, app.port)));
    return compareJson((await handle(get(line.split(" ")[1] ?? ""))).status, expectedStatus);
  } finally {
    app.close();
  }
}

async function checkHttpsProbe({ alpns, probePath, statusCode, expectedProtocol }: StatusCase): Promise<Outcome> {
  const app = await startSecureApplication(alpns);
  try {
    const httpGet = { path: "/hello/sunnyvale", port: app.port, scheme: "HTTPS" };
    const probers = { "/app-health/hello-world/readyz": { httpGet }, "/app-health/hello-world/livez": { httpGet } };
    const answer = await statusHandler(optionsOf(JSON.stringify(probers)))(get(`/${probePath}`));
    return compareJson(
      { status: answer.status, version: app.seen.version },
      { status: statusCode, version: expectedProtocol },
    );
  } finally {
    app.close();
  }
}

async function checkProbeHeader({ originHeaders, want }: StatusCase): Promise<Outcome> {
  const app = await startApplication((_, response) => void response.end());
  try {
    const probers = { "/app-health/x/livez": { httpGet: { path: "/header", port: app.port } } };
    const headers = Object.fromEntries(
      Object.entries(originHeaders).map(([name, values]) => [name.toLowerCase(), values]),
    );
    await statusHandler(optionsOf(JSON.stringify(probers)))(get("/app-health/x/livez", headers));
    return compareJson(app.seen.headers, want);
  } finally {
    app.close();
  }
}

async function checkParse({ kubeAppProbers, errorContains }: StatusCase): Promise<Outcome> {
  try {
    parseAppProbes(String(kubeAppProbers));
    return compareJson(null, errorContains);
  } catch (thrown) {
    const text = errorText(thrown);
    return errorContains !== null && text.includes(errorContains) ? "passed" : compareJson(text, errorContains);
  }
}

async function checkQuit({ method, remoteAddr, expected }: StatusCase): Promise<Outcome> {
  const address = remoteAddr.replace(/^\[(.*)\]$/, "$1");
  const answer = await statusHandler(optionsOf(""))({
    ...get("/quitquitquit"),
    method,
    fromLoopback: isLoopback(address),
  });
  return compareJson(answer.status, expected);
}

async function checkMerge({ app, envoy, bodyContains }: StatusCase): Promise<Outcome> {
  const { body } = await scrape({ envoy, app: () => ({ type: "text/plain", body: app }), accept: "text/plain" });
  return body.includes(bodyContains) ? "passed" : compareJson(body, bodyContains);
}

async function checkContentType({ accept, recordedContentType, endsWithEOF }: StatusCase): Promise<Outcome> {
  const app = (wanted: string) => {
    const type = wanted.split(",")[0] ?? "";
    return { type, body: `app_metric 1\n${type.includes("openmetrics") ? "# EOF\n" : ""}` };
  };
  const { type, body } = await scrape({ envoy: "envoy_metric 1\n", app, accept });
  const order = ["istio_agent_", "envoy_metric", "app_metric"].map((name) => body.indexOf(name));
  const sorted = order.every((at, index) => at >= 0 && at >= (order[index - 1] ?? 0));
  return compareJson(
    { type, sorted, eof: body.endsWith("# EOF\n") },
    { type: recordedContentType, sorted: true, eof: endsWithEOF },
  );
}

interface ScrapeInput {
  readonly envoy: string;
  readonly app: (accept: string) => { readonly type: string; readonly body: string };
  readonly accept: string;
}

async function scrape({ envoy, app, accept }: ScrapeInput): Promise<{ readonly type: string; readonly body: string }> {
  const opened: { close(): void }[] = [];
  const open = async (answer: (request: IncomingMessage) => { type: string; body: string }): Promise<Application> => {
    const application = await startApplication((incoming, response) => {
      const { type, body } = answer(incoming);
      response.writeHead(200, { "content-type": type }).end(body);
    });
    opened.push(application);
    return application;
  };
  try {
    const envoyApp = await open(() => ({ type: "text/plain", body: envoy }));
    const application = await open((incoming) => app(incoming.headers.accept ?? ""));
    const options = optionsOf("");
    const target = {
      envoyPrometheusPort: envoyApp.port,
      application: { port: application.port, path: "/metrics", https: false },
    };
    const server = await startStatusServer(0, { ...options, scrape: { ...options.scrape, ...target } });
    opened.push(server);
    const outgoing = request({
      host: "127.0.0.1",
      port: server.port,
      path: "/stats/prometheus",
      headers: { accept },
      agent: false,
    }).end();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    let body = "";
    for await (const chunk of response.setEncoding("utf8")) body += chunk;
    return { type: response.headers["content-type"] ?? "", body };
  } finally {
    for (const one of opened) one.close();
  }
}

async function checkReadiness({ statsText, errorContains }: StatusCase): Promise<Outcome> {
  const problem = configProblem(statsText) ?? serverProblem(statsText) ?? null;
  return problem !== null && errorContains !== null && problem.includes(errorContains)
    ? "passed"
    : compareJson(problem, errorContains);
}
