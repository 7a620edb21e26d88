/** The control plane's HTTP endpoints, to be added to a server. */
import type { FastifyInstance } from "fastify";
import type { Logger } from "#lib/log.ts";
import type { Metrics } from "#lib/metrics.ts";
import { type AccessOptions, accessOf } from "./access.ts";
import { indexPage } from "./index-page.ts";
import { DEBUG_PAGES, type DebugState } from "./pages.ts";
import type { Readiness } from "./readiness.ts";

export interface DebugOptions extends DebugState, AccessOptions {
  readonly log: Logger;
}

/** `/debug` and the pages it lists. */
export function addDebugRoutes(app: FastifyInstance, options: DebugOptions): void {
  app.get("/debug", (_, reply) => reply.type("text/html; charset=utf-8").send(indexPage(DEBUG_PAGES)));
  for (const { path, content } of DEBUG_PAGES) {
    app.get<{ Querystring: { pretty?: string } }>(path, async (request, reply) => {
      const { remoteAddress } = request.socket;
      const access = await accessOf({ remoteAddress, authorization: request.headers.authorization }, options);
      if ("refused" in access) {
        options.log.warn("debug page refused", { path, peer: remoteAddress, reason: access.refused });
        return reply.code(401).type("text/plain").send(`${access.refused}\n`);
      }
      const indent = request.query.pretty === undefined ? 0 : 2;
      return reply.type("application/json").send(JSON.stringify(content(options, access.scope), null, indent));
    });
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
export function addMetricsRoute(app: FastifyInstance, metrics: Metrics): void {
  app.get("/metrics", async (_, reply) => {
    const { text, contentType } = await metrics.read();
    return reply.type(contentType).send(text);
  });
}
