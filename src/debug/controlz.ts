/**
 * ControlZ: what the process is and does, under the paths of Istio's programs. Each topic has a page for people (`/scopez`)
 * and one for programs (`/scopej`); levels of the log can be changed on both.
 */
import { hostname, tmpdir } from "node:os";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { LOG_LEVELS, type LogLevel, type ScopeSettings } from "#lib/log.ts";
import { type AccessOptions, accessOf } from "./access.ts";
import { topicPage } from "./controlz-page.ts";

export interface ControlzOptions extends AccessOptions {
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
  readonly content: (options: ControlzOptions) => unknown;
}

/** In the order of the page's menu. */
export const TOPICS: readonly Topic[] = [
  { prefix: "home", title: "Home", content: homeInfo },
  { prefix: "scope", title: "Logging Scopes", content: ({ scopes }) => scopeInfos(scopes) },
  { prefix: "mem", title: "Memory Usage", content: memoryInfo },
  { prefix: "env", title: "Environment Variables", content: ({ env }) => environment(env) },
  { prefix: "proc", title: "Process Info", content: processInfo },
  { prefix: "arg", title: "Command-Line Arguments", content: ({ args }) => args },
  { prefix: "version", title: "Version Info", content: ({ version }) => version },
  { prefix: "signal", title: "Signals", content: () => ["SIGUSR1"] },
];

const JSON_TYPE = "application/json";
const HTML_TYPE = "text/html; charset=utf-8";

/** Adds all topics. Beyond this machine only callers of the root namespace get an answer: the environment can hold secrets. */
export function addControlzRoutes(app: FastifyInstance, options: ControlzOptions): void {
  app.addContentTypeParser("*", { parseAs: "string" }, (_, body, done) => done(null, body));
  app.removeContentTypeParser(JSON_TYPE);
  app.addHook("onRequest", async (request, reply) => {
    const { remoteAddress } = request.socket;
    const access = await accessOf({ remoteAddress, authorization: request.headers.authorization }, options);
    if ("refused" in access) return reply.code(401).type("text/plain").send(`${access.refused}\n`);
    if (access.scope !== undefined) {
      return reply.code(403).type("text/plain").send(`ControlZ is not for namespace "${access.scope}"\n`);
    }
  });
  const html = (topic: Topic) => (_: FastifyRequest, reply: FastifyReply) =>
    reply.type(HTML_TYPE).send(topicPage(TOPICS, topic, topic.content(options)));
  for (const topic of TOPICS) {
    for (const slash of ["", "/"]) {
      app.get(`/${topic.prefix}z${slash}`, html(topic));
      app.get(`/${topic.prefix}j${slash}`, (_, reply) => reply.type(JSON_TYPE).send(json(topic.content(options))));
    }
    if (topic.prefix === "home") app.get("/", html(topic));
  }
  addScopeRoutes(app, options);
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
