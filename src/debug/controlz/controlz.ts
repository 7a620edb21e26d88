/**
 * ControlZ: what the process is and does, under the paths of Istio's programs. Each topic has a page for people (`/scopez`)
 * and one for programs (`/scopej`); levels of the log can be changed on both.
 *
 * Any account of the machine reaches a port on loopback. The environment may hold secrets, and ending the process is not for everybody, so
 * these topics are served on a private unix socket only.
 */
import { hostname, tmpdir } from "node:os";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { LOG_LEVELS, type LogLevel, type ScopeSettings } from "#lib/log/log.ts";
import { localRequestProblem } from "#lib/net/local-request.ts";
import { type AccessOptions, accessOf, isLoopback } from "../access.ts";
import { topicPage } from "./controlz-page.ts";

export interface ControlzOptions extends AccessOptions {
  /** Only the own account can connect, as to a private unix socket: serves everything. */
  readonly isPrivate: boolean;
  /** By name; changed when somebody asks for it. */
  readonly scopes: ReadonlyMap<string, ScopeSettings>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly args: readonly string[];
  readonly version: object;
  /** Ends the process, gracefully. */
  readonly exit: () => void;
  /** Does what a signal to the process would. */
  readonly signal: (name: "SIGUSR1") => void;
}

interface Topic {
  readonly prefix: string;
  readonly title: string;
  /** Served on a private socket only. */
  readonly isPrivate?: true;
  readonly content: (options: ControlzOptions) => unknown;
}

/** In the order of the page's menu. */
export const TOPICS: readonly Topic[] = [
  { prefix: "home", title: "Home", content: homeInfo },
  { prefix: "scope", title: "Logging Scopes", content: ({ scopes }) => scopeInfos(scopes) },
  { prefix: "mem", title: "Memory Usage", isPrivate: true, content: memoryInfo },
  { prefix: "env", title: "Environment Variables", isPrivate: true, content: ({ env }) => environment(env) },
  { prefix: "proc", title: "Process Info", content: processInfo },
  { prefix: "arg", title: "Command-Line Arguments", content: ({ args }) => args },
  { prefix: "version", title: "Version Info", content: ({ version }) => version },
  { prefix: "signal", title: "Signals", isPrivate: true, content: () => ["SIGUSR1"] },
];

const JSON_TYPE = "application/json";
const HTML_TYPE = "text/html; charset=utf-8";

/** Adds the topics. Callers of other machines must be of the root namespace; those of this one must not be browsers or proxies. */
export function addControlzRoutes(app: FastifyInstance, options: ControlzOptions): void {
  app.addContentTypeParser("*", { parseAs: "string" }, (_, body, done) => done(null, body));
  app.removeContentTypeParser(JSON_TYPE);
  app.addHook("onRequest", async (request, reply) => {
    const { remoteAddress } = request.socket;
    const isLocal = options.isPrivate || isLoopback(remoteAddress);
    const problem = isLocal ? localRequestProblem(request.headers) : undefined;
    if (problem !== undefined) return reply.code(403).type("text/plain").send(`${problem}\n`);
    if (options.isPrivate) return;
    const access = await accessOf({ remoteAddress, headers: request.headers }, options);
    if ("refused" in access) return reply.code(401).type("text/plain").send(`${access.refused}\n`);
    if (access.scope !== undefined) {
      return reply.code(403).type("text/plain").send(`ControlZ is not for namespace "${access.scope}"\n`);
    }
  });
  const topics = TOPICS.filter((topic) => options.isPrivate || topic.isPrivate !== true);
  const html = (topic: Topic) => (_: FastifyRequest, reply: FastifyReply) =>
    reply.type(HTML_TYPE).send(topicPage(topics, topic, topic.content(options)));
  for (const topic of topics) {
    for (const slash of ["", "/"]) {
      app.get(`/${topic.prefix}z${slash}`, html(topic));
      app.get(`/${topic.prefix}j${slash}`, (_, reply) => reply.type(JSON_TYPE).send(json(topic.content(options))));
    }
    if (topic.prefix === "home") app.get("/", html(topic));
  }
  addScopeRoutes(app, options);
  if (options.isPrivate) addProcessRoutes(app, options);
  else app.setNotFoundHandler((_, reply) => reply.code(404).type("text/plain").send(NOT_HERE));
}

const NOT_HERE = "Not served here. Environment, memory, signals and exit need --ctrlz_address=unix:PATH\n";

function addProcessRoutes(app: FastifyInstance, options: ControlzOptions): void {
  app.put("/memj/forcecollection", (_, reply) => {
    // Only there when Node was told so; nothing is wrong without.
    globalThis.gc?.();
    return reply.code(202).send();
  });
  for (const method of ["PUT", "POST"] as const) {
    app.route({
      method,
      url: "/signalj/SIGUSR1",
      handler: (_, reply) => accepted(reply, () => options.signal("SIGUSR1")),
    });
  }
  app.put("/homej/exit", (_, reply) => accepted(reply, options.exit));
}

function accepted(reply: FastifyReply, act: () => void): FastifyReply {
  act();
  return reply.code(202).send();
}

function addScopeRoutes(app: FastifyInstance, { scopes }: ControlzOptions): void {
  const unknown = (reply: FastifyReply, name: string) =>
    reply
      .code(400)
      .type(JSON_TYPE)
      .send(json({ error: `unknown scope name: ${name}` }));
  app.get<{ Params: { scope: string } }>("/scopej/:scope", ({ params }, reply) => {
    const settings = scopes.get(params.scope);
    if (settings === undefined) return unknown(reply, params.scope);
    return reply.type(JSON_TYPE).send(json(scopeInfo(params.scope, settings)));
  });
  app.put<{ Params: { scope: string }; Body: string }>("/scopej/:scope", ({ params, body }, reply) => {
    const wanted = parsedObject(body);
    if (wanted === undefined)
      return reply
        .code(400)
        .type(JSON_TYPE)
        .send(json({ error: "unable to decode request" }));
    const settings = scopes.get(params.scope);
    if (settings === undefined) return unknown(reply, params.scope);
    settings.level = levelOf(wanted.output_level) ?? settings.level;
    settings.stackLevel = levelOf(wanted.stack_trace_level) ?? settings.stackLevel;
    settings.callers = wanted.log_callers === true;
    return reply.code(202).send();
  });
}

function parsedObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined; // not JSON: the caller says so
  }
}

function levelOf(value: unknown): LogLevel | undefined {
  return LOG_LEVELS.find((level) => level === value && level !== "fatal");
}

function scopeInfos(scopes: ControlzOptions["scopes"]): readonly object[] {
  return [...scopes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, settings]) => scopeInfo(name, settings));
}

function scopeInfo(name: string, { level, stackLevel, callers }: ScopeSettings): object {
  const description = name === "default" ? "Lines of no scope of their own" : `Lines of the scope ${name}`;
  return { name, description, output_level: level, stack_trace_level: stackLevel, log_callers: callers };
}

function homeInfo({ args }: ControlzOptions): object {
  return {
    ProcessName: args[0] ?? "",
    HeapSize: process.memoryUsage().heapUsed,
    CurrentTime: Date.now() * 1_000_000,
    Hostname: hostname(),
    Uptime: Math.round(process.uptime()),
  };
}

/** Names of Go's figures where Node has the same, and Node's own. */
function memoryInfo(): object {
  const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
  return { Sys: rss, HeapSys: heapTotal, HeapAlloc: heapUsed, External: external, ArrayBuffers: arrayBuffers };
}

function environment(env: ControlzOptions["env"]): readonly object[] {
  return Object.entries(env)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value = ""]) => ({ name, value }));
}

function processInfo(): object {
  return {
    egid: process.getegid?.(),
    euid: process.geteuid?.(),
    gid: process.getgid?.(),
    groups: process.getgroups?.(),
    pid: process.pid,
    ppid: process.ppid,
    uid: process.getuid?.(),
    wd: process.cwd(),
    hostname: hostname(),
    tempdir: tmpdir(),
  };
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
