/** The control plane's HTTP endpoints, to be added to a server. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "#lib/log/log.ts";
import type { Metrics } from "#lib/metrics/metrics.ts";
import type { SendBudget } from "#model/ports.ts";
import { type Access, type AccessOptions, accessOf, isLoopback, mayAskFor } from "./access.ts";
import { indexPage } from "./pages/index-page.ts";
import { type DebugPage, type DebugState, PageRefusal, type PageRequest } from "./pages/page.ts";
import { DEBUG_PAGES } from "./pages/pages.ts";
import type { Readiness } from "./readiness.ts";

export interface DebugOptions extends DebugState, AccessOptions {
  readonly log: Logger;
  /** Answers wait in it until they were read; not limited when not given. */
  readonly budget?: SendBudget;
}

/** A caller that does not read an answer for so long is cut off. */
const READ_MS = 30_000;

/** `/debug` and the pages it lists. */
export function addDebugRoutes(app: FastifyInstance, options: DebugOptions): void {
  app.get("/debug", async (request, reply) => {
    const access = await checkedAccess(request, reply, options);
    if (access === undefined) return reply;
    return reply.type("text/html; charset=utf-8").send(indexPage(DEBUG_PAGES));
  });
  for (const page of DEBUG_PAGES) {
    app.get<{ Querystring: PageRequest["query"] }>(page.path, async (request, reply) => {
      const access = await checkedAccess(request, reply, options);
      if (access === undefined) return reply;
      const answer = () => answerOf(page, options, { scope: access.scope, query: request.query });
      const { status, type, body } = await whenRead(answer, reply, options);
      return reply.code(status).type(type).send(body);
    });
  }
}

/** What the caller may see; undefined when it was refused. */
async function checkedAccess(
  request: FastifyRequest,
  reply: FastifyReply,
  options: DebugOptions,
): Promise<Exclude<Access, { readonly refused: string }> | undefined> {
  const { remoteAddress } = request.socket;
  const path = request.routeOptions.url ?? "";
  const refuse = (status: number, reason: string) => {
    options.log.warn("debug page refused", { path, peer: remoteAddress, reason });
    reply.code(status).type("text/plain").send(`${reason}\n`);
    return undefined;
  };
  const access = await accessOf({ remoteAddress, headers: request.headers }, options);
  if ("refused" in access) return refuse(401, access.refused);
  if (mayAskFor(path.slice("/debug/".length), access.scope)) return access;
  return refuse(403, `${path} is not for callers of namespace "${access.scope}"`);
}

/** An answer, made when there is room for it, and counted until it was read. */
function whenRead(answer: () => PageAnswer, reply: FastifyReply, { budget }: DebugOptions): Promise<PageAnswer> {
  if (budget === undefined) return Promise.resolve(answer());
  return new Promise((resolve, reject) => {
    const cancel = budget.whenRoom(() => {
      // The caller left while it waited; nobody would say when its answer was read.
      if (isGone(reply)) return resolve(GONE);
      try {
        const made = answer();
        const bytes = Buffer.byteLength(made.body);
        budget.take(bytes);
        const late = setTimeout(() => reply.raw.destroy(), READ_MS);
        reply.raw.once("close", () => {
          clearTimeout(late);
          budget.giveBack(bytes);
        });
        resolve(made);
      } catch (thrown) {
        reject(thrown);
      }
    });
    if (cancel === undefined)
      resolve({ status: 503, type: "text/plain", body: "Too many debug requests: try again later\n" });
    else if (isGone(reply)) cancel();
    else reply.raw.once("close", cancel);
  });
}

const GONE: PageAnswer = { status: 503, type: "text/plain", body: "" };

function isGone({ raw }: FastifyReply): boolean {
  return raw.destroyed || (raw.socket?.destroyed ?? true);
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
  // Hundreds of requests can come in one packet: they get the same text.
  let reading: ReturnType<Metrics["read"]> | undefined;
  const read = () => {
    reading ??= metrics.read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
  app.get("/metrics", async (request, reply) => {
    if (isLocal && !isLoopback(request.socket.remoteAddress)) {
      return reply.code(403).send("Only requests from localhost are allowed\n");
    }
    const { text, contentType } = await read();
    return reply.type(contentType).send(text);
  });
}
