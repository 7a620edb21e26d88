/** The status port, 15020: readiness, merged metrics, the application's probes, and the way to end the agent. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Server as NetServer } from "node:net";
import { pipeline } from "node:stream/promises";
import { Admission, AGENT_LIMITS } from "#lib/admission/admission.ts";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { HTTP_TIMEOUTS, limitConnections } from "#lib/net/limit-connections.ts";
import { type Answer, type IncomingRequest, refusal } from "./answer.ts";
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
  /** `--profiling` */
  readonly profiling: boolean;
  /** The name table as JSON; undefined while there is none. */
  readonly nameTable: () => string | undefined;
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

/** True for an address of the machine itself. */
export function isLoopback(address: string): boolean {
  return /^(::ffff:)?127\.|^::1$/.test(address);
}

/**
 * Opens the port on all addresses; 0 picks a free one. A socket in place of a number is one that listens already. Rejects
 * when it cannot be opened.
 */
export async function startStatusServer(port: number | NetServer, options: StatusOptions): Promise<StatusServer> {
  const { log } = options;
  const handle = statusHandler(options);
  const server = createServer(HTTP_TIMEOUTS, (request, response) => void respond({ request, response, log, handle }));
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  limitConnections(server, new Admission({ limits: AGENT_LIMITS }));
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
  const exact: Readonly<Record<string, Handler>> = {
    "/healthz/ready": ready,
    "/stats/prometheus": (request) => metricsAnswer(request, options),
    "/metrics": (request) => metricsAnswer(request, options),
    "/quitquitquit": (request) => refusal(request, { method: "POST" }) ?? accepted(options.quit),
    "/drain": (request) => refusal(request, { method: "POST" }) ?? accepted(options.drain),
    "/debug/ndsz": (request) => refusal(request, {}) ?? nameTableAnswer(options),
  };
  return (request) => {
    const { path } = request;
    const handler = Object.hasOwn(exact, path) ? exact[path] : undefined;
    if (handler !== undefined) return handler(request);
    if (FOLDERS.has(path)) return { status: 307, headers: { location: `${path}/${request.query}` } };
    if (/^\/app-(health|lifecycle)\//.test(path)) return appProbe(request, options);
    if (options.profiling && path.startsWith("/debug/pprof/")) return profile(request);
    return NOT_FOUND;
  };
}

/** Where people leave out the last stroke. */
const FOLDERS: ReadonlySet<string> = new Set(["/debug/pprof", "/app-health", "/app-lifecycle"]);
const NOT_FOUND: Answer = { status: 404, body: "404 page not found\n" };

function readyHandler({ waiting, log }: StatusOptions): () => Promise<Answer> {
  let wasReady = false;
  return async () => {
    const missing = await waiting();
    const isReady = missing.length === 0;
    if (!isReady) log.warn(`Envoy proxy is NOT ready: ${missing.map(({ reason }) => reason).join("; ")}`);
    else if (!wasReady) log.info("Envoy proxy is ready");
    wasReady = isReady;
    return isReady ? { status: 200 } : { status: 503, body: formatWaiting(missing) };
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

function accepted(act: () => void): Answer {
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
    log.error(`Prober does not exists url ${request.path}`);
    return { status: 400, body: `app prober config does not exists for ${request.path}` };
  }
  const answer = await runProbe(probe, request, probeTarget);
  if (answer.problem !== undefined) log.scope("probes").error(`${answer.problem} (${request.path})`);
  return answer;
}

/** Loaded when somebody looks, which hardly anybody does. */
async function profile(request: IncomingRequest): Promise<Answer> {
  const refused = refusal(request, {});
  if (refused !== undefined) return refused;
  const { profileAnswer } = await import("./profiling.ts");
  return (await profileAnswer(request)) ?? NOT_FOUND;
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
      fromLoopback: isLoopback(request.socket.remoteAddress ?? ""),
      headers: request.headersDistinct,
      signal: gone.signal,
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
