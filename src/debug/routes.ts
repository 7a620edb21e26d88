/** The control plane's HTTP endpoints, to be added to a server. */
import type { FastifyInstance } from "fastify";
import type { Logger } from "#lib/log.ts";
import type { Metrics } from "#lib/metrics.ts";
import { type AccessOptions, accessOf, isLoopback } from "./access.ts";
import { indexPage } from "./index-page.ts";
import { type DebugPage, type DebugState, PageRefusal, type PageRequest } from "./page.ts";
import { DEBUG_PAGES } from "./pages.ts";
import type { Readiness } from "./readiness.ts";

export interface DebugOptions extends DebugState, AccessOptions {
  readonly log: Logger;
}

/** `/debug` and the pages it lists. */
export function addDebugRoutes(app: FastifyInstance, options: DebugOptions): void {
  app.get("/debug", (_, reply) => reply.type("text/html; charset=utf-8").send(indexPage(DEBUG_PAGES)));
  for (const page of DEBUG_PAGES) {
    app.get<{ Querystring: Record<string, string | undefined> }>(page.path, async (request, reply) => {
      const { remoteAddress } = request.socket;
      const access = await accessOf({ remoteAddress, authorization: request.headers.authorization }, options);
      if ("refused" in access) {
        options.log.warn("debug page refused", { path: page.path, peer: remoteAddress, reason: access.refused });
        return reply.code(401).type("text/plain").send(`${access.refused}\n`);
      }
      const { status, type, body } = answerOf(page, options, { scope: access.scope, query: request.query });
      return reply.code(status).type(type).send(body);
    });
  }
}

/** A page as it is sent. */
export interface PageAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** The answer to a request for a page. */
export function answerOf(page: DebugPage, state: DebugState, request: PageRequest): PageAnswer {
  try {
    const content = page.content(state, request);
    if (typeof content === "string") return { status: 200, type: "text/plain", body: content };
    const indent = request.query.pretty === undefined ? 0 : 2;
    return { status: 200, type: "application/json", body: JSON.stringify(content, null, indent) };
  } catch (thrown) {
    if (!(thrown instanceof PageRefusal)) throw thrown;
    return { status: thrown.status, type: "text/plain", body: `${thrown.message}\n` };
  }
}

/** `/ready` */
export function addReadyRoute(app: FastifyInstance, readiness: Readiness): void {
  app.get("/ready", (_, reply) => {
    const { status, body } = readiness.answer();
    return reply.code(status).type("text/plain").send(body);
  });
}

/** `/version` */
export function addVersionRoute(app: FastifyInstance, version: string): void {
  app.get("/version", (_, reply) => reply.type("text/plain").send(version));
}

/** `/metrics` */
export function addMetricsRoute(app: FastifyInstance, metrics: Metrics, isLocal: boolean): void {
  app.get("/metrics", async (request, reply) => {
    if (isLocal && !isLoopback(request.socket.remoteAddress)) {
      return reply.code(403).send("Only requests from localhost are allowed\n");
    }
    const { text, contentType } = await metrics.read();
    return reply.type(contentType).send(text);
  });
}
