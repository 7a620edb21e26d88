/** The status port, 15020: readiness, merged metrics, the application's probes, and the way to end the agent. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Server as NetServer } from "node:net";
import { pipeline } from "node:stream/promises";
import { Admission, AGENT_LIMITS } from "#lib/admission/admission.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { HTTP_TIMEOUTS, limitConnections } from "#lib/net/limit-connections.ts";
import { callerAccount } from "../limits/caller-account.ts";
import { isLoopback } from "../limits/loopback.ts";
import { RunningLimit } from "../limits/running-limit.ts";
import { type Answer, type IncomingRequest, refusal } from "./answer.ts";
import { type Enders, enderProblem } from "./enders.ts";
import type { AppProbe } from "./probes/parse.ts";
import { type ProbeTarget, runProbe } from "./probes/run.ts";
import { formatWaiting, type Waiting } from "./readiness.ts";
import { mergedMetrics, type ScrapeOptions } from "./scrape.ts";

export interface StatusOptions {
  /** What the proxy waits for; nothing when it is ready. */
  readonly waiting: () => Promise<readonly Waiting[]>;
  readonly probes: ReadonlyMap<string, AppProbe>;
  readonly probeTarget: ProbeTarget;
  readonly scrape: ScrapeOptions;
  /** METRICS_LOCALHOST_ACCESS_ONLY */
  readonly metricsOnLoopbackOnly: boolean;
  /** The name table as JSON; undefined while there is none. */
  readonly nameTable: () => string | undefined;
  /** Who may end the agent or start draining. */
  readonly enders: Enders;
  /** Ends the agent without draining. */
  readonly quit: () => void;
  /** Starts draining, and lets the agent live. */
  readonly drain: () => void;
  /** Called when the port fails after it was opened: without it the proxy can never be ready again. */
  readonly failed: () => void;
  readonly log: Logger;
}

export interface StatusServer {
  readonly port: number;
  close(): void;
}

/** Envoy keeps its connections to this port as long; ended by us, they could break a probe that is on its way. */
const KEEP_ALIVE_MS = 3_600_000;

/** Each scrape holds a connection to Envoy and one to the application. */
const SCRAPES = { max: 16, maxPerPeer: 4 } as const;
/** Each probe holds a connection to the application, which may never answer. */
const PROBES = { max: 64, maxPerPeer: 32 } as const;
/** The name table may be large, and looking up a caller's account reads all connections of the machine. */
const OTHERS = { max: 4, maxPerPeer: 4 } as const;
const MAX_LOGGED_PATH = 200;
/** No request to this port needs a body. */
const MAX_BODY_BYTES = 16 * 1024;

/**
 * Opens the port on all addresses; 0 picks a free one. A socket in place of a number is one that listens already. Rejects
 * when it cannot be opened.
 */
export async function startStatusServer(port: number | NetServer, options: StatusOptions): Promise<StatusServer> {
  const { log } = options;
  const handle = statusHandler(options);
  const server = createServer(HTTP_TIMEOUTS, (request, response) => void respond({ request, response, log, handle }));
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  limitConnections(server, { admission: new Admission({ limits: AGENT_LIMITS }), maxBodyBytes: MAX_BODY_BYTES });
  if (typeof port === "number") await listen(server, port);
  else await listenOn(server, port);
  const { port: opened } = server.address() as AddressInfo;
  log.info(`Opening status port ${opened}`);
  server.on("error", (thrown) => {
    log.error(`The status port failed: ${errorText(thrown)}`);
    options.failed();
  });
  return {
    port: opened,
    close: () => {
      server.close();
      server.closeAllConnections();
      log.info("Status server has successfully terminated");
    },
  };
}

type Handler = (request: IncomingRequest) => Answer | Promise<Answer>;

export function statusHandler(options: StatusOptions): Handler {
  const ready = readyHandler(options);
  const metrics = limited(SCRAPES, (request) => metricsAnswer(request, options));
  const others = new RunningLimit(OTHERS);
  const exact: Readonly<Record<string, Handler>> = {
    "/healthz/ready": ready,
    "/stats/prometheus": metrics,
    "/metrics": metrics,
    "/quitquitquit": limited(others, (request) => endAnswer(request, options, options.quit)),
    "/drain": limited(others, (request) => endAnswer(request, options, options.drain)),
    "/debug/ndsz": limited(others, (request) => refusal(request, {}) ?? nameTableAnswer(options)),
  };
  const probe = limited(PROBES, (request) => appProbe(request, options));
  return (request) => {
    const { path } = request;
    const handler = Object.hasOwn(exact, path) ? exact[path] : undefined;
    if (handler !== undefined) return handler(request);
    if (FOLDERS.has(path)) return { status: 307, headers: { location: `${path}/${request.query}` } };
    if (/^\/app-(health|lifecycle)\//.test(path)) return probe(request);
    return NOT_FOUND;
  };
}

/** Where people leave out the last stroke. */
const FOLDERS: ReadonlySet<string> = new Set(["/app-health", "/app-lifecycle"]);
const NOT_FOUND: Answer = { status: 404, body: "404 page not found\n" };
const BUSY: Answer = { status: 503, body: "Too many requests of this kind are running\n" };

/** Bounds the requests that run at the same time. Handlers that share a limit share its places. */
function limited(by: RunningLimit | ConstructorParameters<typeof RunningLimit>[0], handle: Handler): Handler {
  const limit = by instanceof RunningLimit ? by : new RunningLimit(by);
  return (request) => {
    const end = limit.begin(request.fromLoopback ? "loopback" : request.peer, request.cut);
    if (end === undefined) return BUSY;
    request.signal.addEventListener("abort", end, { once: true });
    return handle(request);
  };
}

/** Requests that come while Envoy is being asked share its answer, so that a flood of them is one question to Envoy. */
function readyHandler({ waiting, log }: StatusOptions): () => Promise<Answer> {
  let wasReady = false;
  let running: Promise<Answer> | undefined;
  const check = async (): Promise<Answer> => {
    const missing = await waiting();
    const isReady = missing.length === 0;
    if (!isReady) log.warn(`Envoy proxy is NOT ready: ${missing.map(({ reason }) => reason).join("; ")}`);
    else if (!wasReady) log.info("Envoy proxy is ready");
    wasReady = isReady;
    return isReady ? { status: 200 } : { status: 503, body: formatWaiting(missing) };
  };
  return () => {
    running ??= check().finally(() => {
      running = undefined;
    });
    return running;
  };
}

async function metricsAnswer(
  request: IncomingRequest,
  { scrape, metricsOnLoopbackOnly }: StatusOptions,
): Promise<Answer> {
  const refused = metricsOnLoopbackOnly ? refusal(request, {}) : undefined;
  if (refused !== undefined) return refused;
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, values]) => [name, values?.[0]]));
  const { contentType, pour } = await mergedMetrics(scrape, {
    headers,
    query: request.query,
    signal: request.signal,
  });
  return { status: 200, headers: { "content-type": contentType }, body: pour };
}

async function endAnswer(request: IncomingRequest, { enders }: StatusOptions, act: () => void): Promise<Answer> {
  const refused = refusal(request, { method: "POST" });
  if (refused !== undefined) return refused;
  const problem = await enderProblem(enders, request);
  if (problem !== undefined) return { status: 403, body: `${problem}\n` };
  // After the answer is on its way.
  setImmediate(act);
  return { status: 200, body: "OK" };
}

function nameTableAnswer({ nameTable }: StatusOptions): Answer {
  const body = nameTable();
  return body === undefined
    ? { status: 404, body: "{}" }
    : { status: 200, body, headers: { "content-type": "application/json" } };
}

async function appProbe(request: IncomingRequest, { probes, probeTarget, log }: StatusOptions): Promise<Answer> {
  const probe = probes.get(request.path);
  if (probe === undefined) {
    const path = request.path.slice(0, MAX_LOGGED_PATH);
    log.error(`Prober does not exists url ${path}`);
    return { status: 400, body: `app prober config does not exists for ${path}` };
  }
  const answer = await runProbe(probe, request, probeTarget);
  if (answer.problem !== undefined) log.scope("probes").error(`${answer.problem} (${request.path})`);
  return answer;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly log: Logger;
  readonly handle: Handler;
}

async function respond({ request, response, log, handle }: Exchange): Promise<void> {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  const path = mark < 0 ? url : url.slice(0, mark);
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  try {
    const answer = await handle({
      method: request.method ?? "GET",
      path,
      query: mark < 0 ? "" : url.slice(mark),
      peer: request.socket.remoteAddress ?? "",
      fromLoopback: isLoopback(request.socket.remoteAddress ?? ""),
      callerAccount: () => callerAccount(request.socket),
      headers: request.headersDistinct,
      signal: gone.signal,
      cut: () => response.destroy(),
    });
    const { body = "" } = answer;
    if (typeof body === "string" || Buffer.isBuffer(body)) {
      response.writeHead(answer.status, { ...textHeaders(body), ...answer.headers }).end(body);
    } else {
      response.writeHead(answer.status, { ...answer.headers });
      if (typeof body === "function") {
        await body(response);
        response.end();
      } else await pipeline(body, response);
    }
  } catch (thrown) {
    // Whoever left needs no answer.
    if (!gone.signal.aborted) log.error(`${request.method} ${path} failed: ${errorText(thrown)}`);
    response.destroy();
  }
}

function textHeaders(body: string | Buffer): Readonly<Record<string, string>> {
  const length = { "content-length": String(Buffer.byteLength(body)) };
  return body.length === 0 ? length : { ...length, "content-type": "text/plain; charset=utf-8" };
}

/** On all addresses of both families, or of IPv4 on a machine without the other: what Node does by itself. */
async function listen(server: Server, port: number): Promise<void> {
  await listenOn(server, { port }).catch(notOpened(port));
}

function notOpened(port: number) {
  return (cause: unknown): never => {
    throw new MeshError("STATUS_PORT_NOT_OPENED", `Cannot open status port ${port}`, { cause });
  };
}

async function listenOn(server: Server, where: NetServer | { readonly port: number }): Promise<void> {
  server.listen(where);
  await once(server, "listening");
}
