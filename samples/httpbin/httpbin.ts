/**
 * An HTTP service that tells what it was asked: `/headers /get /anything /status/N /delay/N /hostname /ip /bytes/N
 * /stream/N`, with the JSON shapes of httpbin.
 *
 *   PORT=8080 POD_NAME=httpbin-1 node httpbin.ts
 */
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const MAX_BODY_BYTES = 1_048_576;
const MAX_DELAY_SECONDS = 10;
const MAX_RANDOM_BYTES = 102_400;
const MAX_STREAM_LINES = 100;

/** One request as the endpoints see it. */
interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  /** What follows the name of the endpoint, such as `503` in `/status/503`. */
  readonly argument: string;
}

/** The request makes no sense, and this is the answer. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

type Endpoint = (call: Call, podName: string) => void | Promise<void>;

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  headers: (call) => sendJson(call, { headers: headersOf(call.request) }),
  get: (call) => sendJson(call, describe(call)),
  anything: async (call) => sendJson(call, { ...(await describeWithBody(call)), method: call.request.method }),
  ip: (call) => sendJson(call, { origin: originOf(call.request) }),
  hostname: ({ response }, podName) => send(response, 200, JSON.stringify(podName)),
  status,
  delay,
  bytes,
  stream,
};

/** A server that is not listening yet. */
export function createHttpbin(podName: string): Server {
  // A proxy keeps connections: who ends one may do so at the moment at which the proxy uses it again.
  return createServer({ keepAliveTimeout: 0 }, (request, response) => {
    answer(request, response, podName).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else if (error instanceof Refusal) sendProblem(response, error.status, error.message);
      else sendProblem(response, 500, error instanceof Error ? error.message : String(error));
    });
  });
}

async function answer(request: IncomingMessage, response: ServerResponse, podName: string): Promise<void> {
  const address = `http://${request.headers.host ?? "localhost"}${request.url ?? "/"}`;
  if (!URL.canParse(address)) throw new Refusal(400, "the host or the path is malformed");
  const url = new URL(address);
  url.protocol = header(request, "x-forwarded-proto") ?? "http";
  const [, name = "", argument = ""] = url.pathname.split("/");
  const endpoint = Object.hasOwn(ENDPOINTS, name) ? ENDPOINTS[name] : undefined;
  if (endpoint === undefined) throw new Refusal(404, `no such endpoint; try /${Object.keys(ENDPOINTS).join(" /")}`);
  await endpoint({ request, response, url, argument }, podName);
}

function status({ response, argument }: Call): void {
  const code = wholeNumber(argument);
  if (code === undefined || code < 200 || code > 599) {
    throw new Refusal(400, "/status/N takes a status code from 200 to 599");
  }
  response.writeHead(code, { "content-length": 0 }).end();
}

async function delay(call: Call): Promise<void> {
  const seconds = /^\d+(\.\d+)?$/.test(call.argument) ? Number(call.argument) : undefined;
  if (seconds === undefined) throw new Refusal(400, "/delay/N takes a number of seconds");
  const gone = new AbortController();
  call.response.once("close", () => gone.abort());
  // Who asked has hung up: nobody is left to be answered.
  await sleep(Math.min(seconds, MAX_DELAY_SECONDS) * 1000, undefined, { signal: gone.signal }).catch(() => undefined);
  if (!gone.signal.aborted) sendJson(call, await describeWithBody(call));
}

function bytes({ response, argument }: Call): void {
  const count = wholeNumber(argument);
  if (count === undefined) throw new Refusal(400, "/bytes/N takes a number of bytes");
  const body = randomBytes(Math.min(count, MAX_RANDOM_BYTES));
  response.writeHead(200, { "content-type": "application/octet-stream", "content-length": body.length }).end(body);
}

function stream(call: Call): void {
  const count = wholeNumber(call.argument);
  if (count === undefined) throw new Refusal(400, "/stream/N takes a number of lines");
  call.response.writeHead(200, { "content-type": "application/json" });
  for (let id = 0; id < Math.min(count, MAX_STREAM_LINES); id++) {
    call.response.write(`${JSON.stringify({ ...describe(call), id })}\n`);
  }
  call.response.end();
}

/** What httpbin tells of every request. */
function describe({ request, url }: Call) {
  return { args: argumentsOf(url), headers: headersOf(request), origin: originOf(request), url: url.href };
}

async function describeWithBody(call: Call) {
  const data = await readBody(call.request);
  const isForm = header(call.request, "content-type")?.startsWith("application/x-www-form-urlencoded") === true;
  const form = isForm ? argumentsOf(new URL(`http://form/?${data}`)) : {};
  return { ...describe(call), data: isForm ? "" : data, files: {}, form, json: isForm ? null : parseJson(data) };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new Refusal(413, `the body is longer than ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // A body may be anything; httpbin says null for what is no JSON.
  }
}

/** Query parameters; those given several times are lists. */
function argumentsOf(url: URL): Record<string, string | readonly string[]> {
  const names = [...new Set(url.searchParams.keys())].sort();
  return Object.fromEntries(
    names.map((name) => {
      const values = url.searchParams.getAll(name);
      return [name, values.length === 1 ? (values[0] ?? "") : values];
    }),
  );
}

/** Names in canonical case, such as `X-Forwarded-Client-Cert`, and in order. */
function headersOf(request: IncomingMessage): Record<string, string> {
  const entries = Object.entries(request.headersDistinct).map(([name, values = []]): [string, string] => [
    canonical(name),
    values.join(","),
  ]);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function canonical(name: string): string {
  return name.replace(/(^|-)([a-z])/g, (part) => part.toUpperCase());
}

/** The caller's address as a proxy in front told it, else that of the connection. */
function originOf(request: IncomingMessage): string {
  return header(request, "x-forwarded-for") ?? request.socket.remoteAddress?.replace("::ffff:", "") ?? "";
}

function header(request: IncomingMessage, name: string): string | undefined {
  return request.headersDistinct[name]?.join(",");
}

function wholeNumber(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function sendJson({ response }: Call, value: unknown): void {
  send(response, 200, `${JSON.stringify(value, undefined, 2)}\n`);
}

function sendProblem(response: ServerResponse, code: number, error: string): void {
  send(response, code, `${JSON.stringify({ error })}\n`);
}

function send(response: ServerResponse, code: number, body: string): void {
  response.writeHead(code, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body);
}

if (import.meta.main) {
  const { PORT = "80", POD_NAME = hostname() } = process.env;
  const server = createHttpbin(POD_NAME).listen(Number(PORT), () => console.log(`httpbin listens on ${PORT}`));
  process.once("SIGTERM", () => server.close(() => process.exit(0)).closeIdleConnections());
}
