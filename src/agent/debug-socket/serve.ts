/**
 * What shows the agent's memory or ends what it does: profiles, heap snapshots, and the state of token exchanges. A heap snapshot
 * contains the workload's tokens and keys, and the application of a workload reaches every port on loopback. So these pages are off
 * unless somebody asks for them, and then only the agent's own account can connect to the unix socket that serves them.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { TokenStatus } from "../sts/google-exchange.ts";
import { openPrivateSocket } from "../unix-socket.ts";
import { type Page, profilePage } from "./profiling.ts";

export interface DebugSocketOptions {
  readonly path: string;
  /** What the security token service got; undefined without one. */
  readonly tokens?: (() => readonly TokenStatus[]) | undefined;
  readonly log: Logger;
}

const NOT_FOUND: Page = { status: 404, body: "404 page not found\n" };

/** Serves until the signal is aborted. Rejects when the socket cannot be opened. */
export async function serveDebugSocket(options: DebugSocketOptions, signal: AbortSignal): Promise<void> {
  const { path, log } = options;
  const socket = await openPrivateSocket(path);
  const server = createServer((request, response) => void respond(request, response, options));
  const connections = new Set<Socket>();
  socket.serve(
    (connection) => {
      connections.add(connection);
      connection.once("close", () => connections.delete(connection));
      server.emit("connection", connection);
    },
    (error) => log.warn(`The debug socket failed: ${errorText(error)}`),
  );
  const close = () => {
    socket.close();
    for (const connection of connections) connection.destroy();
  };
  signal.addEventListener("abort", close, { once: true });
  if (signal.aborted) close();
  log.info(`Debug pages are served on the socket ${path}`);
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  { tokens, log }: DebugSocketOptions,
): Promise<void> {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const { pathname, search } = new URL(request.url ?? "/", "http://localhost");
  try {
    const { status, headers, body } = await pageOf({ pathname, search, signal: gone.signal }, tokens);
    response.writeHead(status, headers);
    if (typeof body === "string") response.end(body);
    else await pipeline(body, response);
  } catch (thrown) {
    if (!gone.signal.aborted) log.error(`${request.method} ${pathname} failed: ${errorText(thrown)}`);
    response.destroy();
  }
}

async function pageOf(
  { pathname, search, signal }: { readonly pathname: string; readonly search: string; readonly signal: AbortSignal },
  tokens: DebugSocketOptions["tokens"],
): Promise<Page> {
  if (pathname === "/stsStatus" || pathname === "/debug") {
    const body = JSON.stringify({ tokens: tokens?.() ?? [] }, null, 2);
    return { status: 200, headers: { "content-type": "application/json" }, body };
  }
  return (await profilePage(pathname, search, signal)) ?? NOT_FOUND;
}
