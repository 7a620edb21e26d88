/** Strangers: they send bytes to a port or to a unix socket, and wait until the server is done with them. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request as requestTls, Agent as TlsAgent } from "node:https";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { FramedMessage, joined } from "#lib/grpc/messages.ts";

/** Where a server listens. */
export type Place =
  | { readonly port: number; readonly host?: string; readonly tls?: boolean }
  | { readonly path: string; readonly tls?: false };

/** No answer is that slow, also not of a server that is broken. */
const PATIENCE_MS = 60_000;
const CONCURRENT_REQUESTS = 8;

/** A connection for bytes as they are. */
function dial(place: Place): Socket {
  const where = "path" in place ? { path: place.path } : { port: place.port, host: place.host ?? "127.0.0.1" };
  const socket = place.tls ? connectTls({ ...where, rejectUnauthorized: false }) : connect(where);
  return socket.on("error", () => undefined);
}

export interface CallInput {
  readonly place: Place;
  /** `/package.Service/Method` */
  readonly method: string;
  readonly messages: readonly Uint8Array[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends messages on a new gRPC call and half-closes it. Resolves when the server has ended the call or the connection. */
export async function sendCall({ place, method, messages, headers = {} }: CallInput): Promise<void> {
  const session = connectHttp2("http://localhost", {
    createConnection: () =>
      place.tls === true && "port" in place
        ? connectTls({
            port: place.port,
            host: place.host ?? "127.0.0.1",
            rejectUnauthorized: false,
            ALPNProtocols: ["h2"],
          })
        : dial(place),
  });
  session.on("error", () => undefined);
  const stream = session.request({
    ":method": "POST",
    ":path": method,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  stream.on("error", () => undefined).resume();
  for (const message of messages) stream.write(joined(new FramedMessage(message).framed));
  stream.end();
  await Promise.race([once(stream, "close").catch(() => undefined), delay(PATIENCE_MS, undefined, { ref: false })]);
  session.destroy();
}

export interface HttpInput {
  readonly place: Place;
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Uint8Array | string;
}

/** Sends the same request that often. Resolves when each was answered or its connection was closed. */
export async function sendRequests(input: HttpInput, times: number): Promise<void> {
  const tls = input.place.tls === true;
  const agent = new (tls ? TlsAgent : Agent)({ keepAlive: true, maxSockets: CONCURRENT_REQUESTS });
  await Promise.all(Array.from({ length: times }, () => sendRequest(input, agent)));
  agent.destroy();
}

function sendRequest({ place, method = "GET", path, headers = {}, body }: HttpInput, agent: Agent): Promise<void> {
  const where = "path" in place ? { socketPath: place.path } : { port: place.port, host: place.host ?? "127.0.0.1" };
  const mutable = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === "string" ? value : [...value]]),
  );
  return new Promise((resolve) => {
    const options = {
      ...where,
      method,
      path,
      headers: mutable,
      agent,
      rejectUnauthorized: false,
      timeout: PATIENCE_MS,
    };
    const sent = (place.tls === true ? requestTls : request)(options, (response) => {
      response.on("error", () => undefined).resume();
    });
    sent
      .on("error", () => undefined)
      .on("timeout", () => sent.destroy())
      .on("close", () => resolve());
    sent.end(body);
  });
}

/** Sends bytes on a new connection. Resolves when the server closes it or, with `answers`, has sent as many bytes. */
export async function sendBytes(place: Place, bytes: Uint8Array, answers?: number): Promise<void> {
  const socket = dial(place);
  const { promise, resolve } = Promise.withResolvers<void>();
  let received = 0;
  socket
    .on("close", () => resolve())
    .on("data", (chunk: Buffer) => {
      received += chunk.length;
      if (answers !== undefined && received >= answers) resolve();
    });
  socket.end(bytes);
  await Promise.race([promise, delay(PATIENCE_MS, undefined, { ref: false })]);
  socket.destroy();
}

/** Sends datagrams, one after another is answered or lost. Ends with one that is always answered. */
export async function sendDatagrams(port: number, datagrams: readonly Uint8Array[], last: Uint8Array): Promise<void> {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const done = Promise.withResolvers<void>();
  socket.on("message", (answer) => {
    if (answer.subarray(0, 2).equals(Buffer.from(last.subarray(0, 2)))) done.resolve();
  });
  const WINDOW = 64;
  for (let at = 0; at < datagrams.length; at += WINDOW) {
    for (const one of datagrams.slice(at, at + WINDOW)) socket.send(one, port, "127.0.0.1");
    // The kernel drops what the server has not read in time.
    await delay(1);
  }
  const again = setInterval(() => socket.send(last, port, "127.0.0.1"), 50);
  await Promise.race([done.promise, delay(PATIENCE_MS, undefined, { ref: false })]);
  clearInterval(again);
  socket.close();
}
