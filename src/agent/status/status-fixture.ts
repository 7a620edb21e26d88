/** Status servers and applications for tests. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { createLogger } from "#lib/log/log.ts";
import { fetchText } from "../http-client.ts";
import { agentMetrics } from "../metrics.ts";
import type { IncomingRequest } from "./answer.ts";
import { connectFrom } from "./probes/connect.ts";
import { type StatusOptions, startStatusServer } from "./server.ts";

export type Context = { after(fn: () => void): void };

export function statusOptions(more: Partial<StatusOptions> = {}) {
  const lines: string[] = [];
  const metrics = agentMetrics();
  const log = createLogger({ write: (line) => lines.push(line) });
  const options: StatusOptions = {
    waiting: async () => [],
    probes: new Map(),
    probeTarget: { host: "127.0.0.1", connect: connectFrom("127.0.0.1"), statusPort: 15020, http2: true },
    scrape: {
      envoyPrometheusPort: 1,
      application: undefined,
      localhost: "127.0.0.1",
      connect: undefined,
      metrics,
      log,
    },
    metricsOnLoopbackOnly: false,
    enders: "everybody",
    nameTable: () => undefined,
    quit: () => undefined,
    drain: () => undefined,
    failed: () => undefined,
    log,
    ...more,
  };
  return { options, lines, metrics };
}

/** Serves on a free port, and gives a client. */
export async function serveStatus(t: Context, options: StatusOptions) {
  const server = await startStatusServer(0, options);
  t.after(() => server.close());
  const get = (
    path: string,
    { method = "GET", headers = {} }: { method?: string; headers?: Record<string, string> } = {},
  ) => fetchText({ host: "127.0.0.1", port: server.port, path, method, headers, timeoutMs: 10_000 });
  return { get, port: server.port };
}

export function requestOf(more: Partial<IncomingRequest>): IncomingRequest {
  const signal = new AbortController().signal;
  return {
    method: "GET",
    path: "/",
    query: "",
    peer: "127.0.0.1",
    fromLoopback: true,
    callerAccount: async () => undefined,
    headers: {},
    signal,
    cut: () => undefined,
    ...more,
  };
}

/** An application on a free port. */
export async function serveApp(t: Context, listener: RequestListener, host = "127.0.0.1"): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

export function text(body: string, contentType = "text/plain", status = 200): RequestListener {
  return (_, response) => response.writeHead(status, { "content-type": contentType }).end(body);
}
