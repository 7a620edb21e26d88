/** The status port, 15020: readiness, merged metrics, the application's probes, and the way to end the agent. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { type Answer, type IncomingRequest, refusal } from "./answer.ts";
import type { AppProbe } from "./probes/parse.ts";
import { type ProbeTarget, runProbe } from "./probes/run.ts";
import { mergedMetrics, type ScrapeOptions } from "./scrape.ts";

export interface StatusOptions {
  /** Why the proxy is not ready; undefined when it is. */
  readonly notReady: () => Promise<string | undefined>;
  readonly probes: ReadonlyMap<string, AppProbe>;
  readonly probeTarget: ProbeTarget;
  readonly scrape: ScrapeOptions;
  /** The name table as JSON; undefined while there is none. */
  readonly nameTable: () => string | undefined;
  /** Ends the agent without draining. */
  readonly quit: () => void;
  /** Starts draining, and lets the agent live. */
  readonly drain: () => void;
  readonly log: Logger;
}

export interface StatusServer {
  readonly port: number;
  close(): void;
}

/** True for an address of the machine itself. */
export function isLoopback(address: string): boolean {
  return /^(::ffff:)?127\.|^::1$/.test(address);
}

/** Opens the port on all addresses; 0 picks a free one. Rejects when it cannot be opened. */
export async function startStatusServer(port: number, options: StatusOptions): Promise<StatusServer> {
  const handle = statusHandler(options);
  const server = createServer((request, response) => void respond({ request, response, options, handle }));
  await listen(server, port);
  const { port: opened } = server.address() as AddressInfo;
  options.log.info(`Opening status port ${opened}`);
  return {
    port: opened,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

type Handler = (request: IncomingRequest) => Answer | Promise<Answer>;

/** Answers everything but scrapes, which are streams. */
export function statusHandler(options: StatusOptions): Handler {
  const ready = readyHandler(options);
  return (request) => {
    const { path } = request;
    if (path === "/healthz/ready") return ready();
    if (path === "/quitquitquit") return refusal(request, { method: "POST" }) ?? accepted(options.quit);
    if (path === "/drain") return refusal(request, { method: "POST" }) ?? accepted(options.drain);
    if (path === "/debug/ndsz") return refusal(request, {}) ?? nameTableAnswer(options);
    if (/^\/app-(health|lifecycle)\//.test(path)) return appProbe(request, options);
    return { status: 404, body: "404 page not found\n" };
  };
}

function readyHandler({ notReady, log }: StatusOptions): () => Promise<Answer> {
  let wasReady = false;
  return async () => {
    const reason = await notReady();
    if (reason !== undefined) log.warn(`Envoy proxy is NOT ready: ${reason}`);
    else if (!wasReady) log.info("Envoy proxy is ready");
    wasReady = reason === undefined;
    return { status: wasReady ? 200 : 503 };
  };
}

function accepted(act: () => void): Answer {
  // After the answer is on its way.
  setImmediate(act);
  return { status: 200, body: "OK" };
}

function nameTableAnswer({ nameTable }: StatusOptions): Answer {
  const body = nameTable();
  return body === undefined ? { status: 404, body: "{}" } : { status: 200, body, contentType: "application/json" };
}

async function appProbe(request: IncomingRequest, { probes, probeTarget, log }: StatusOptions): Promise<Answer> {
  const probe = probes.get(request.path);
  if (probe === undefined) return { status: 400, body: `app prober config does not exists for ${request.path}` };
  const answer = await runProbe(probe, request, probeTarget);
  if (answer.problem !== undefined) log.scope("probes").error(`${answer.problem} (${request.path})`);
  return answer;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly options: StatusOptions;
  readonly handle: Handler;
}

async function respond({ request, response, options, handle }: Exchange): Promise<void> {
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  try {
    if (path === "/stats/prometheus" || path === "/metrics") {
      await respondMetrics(request, response, options);
      return;
    }
    const answer = await handle({
      method: request.method ?? "GET",
      path,
      fromLoopback: isLoopback(request.socket.remoteAddress ?? ""),
      headers: request.headersDistinct,
    });
    response.writeHead(answer.status, answer.contentType === undefined ? {} : { "content-type": answer.contentType });
    response.end(answer.body ?? "");
  } catch (thrown) {
    options.log.error(`${request.method} ${path} failed: ${errorText(thrown)}`);
    response.destroy();
  }
}

async function respondMetrics(
  request: IncomingMessage,
  response: ServerResponse,
  { scrape }: StatusOptions,
): Promise<void> {
  const { contentType, chunks } = await mergedMetrics(scrape, request);
  response.writeHead(200, { "content-type": contentType });
  for await (const chunk of chunks) {
    if (response.destroyed) return;
    if (!response.write(chunk)) await Promise.race([once(response, "drain"), once(response, "close")]);
  }
  response.end();
}

async function listen(server: Server, port: number): Promise<void> {
  try {
    await listenOn(server, port, "::");
  } catch (thrown) {
    // A machine without IPv6.
    const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
    if (code === "EAFNOSUPPORT" || code === "EADDRNOTAVAIL")
      await listenOn(server, port, "0.0.0.0").catch(notOpened(port));
    else notOpened(port)(thrown);
  }
}

function notOpened(port: number) {
  return (cause: unknown): never => {
    throw new MeshError("STATUS_PORT_NOT_OPENED", `Cannot open status port ${port}`, { cause });
  };
}

async function listenOn(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host);
  await once(server, "listening");
}
