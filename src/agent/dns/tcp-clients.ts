/** DNS over TCP: clients, each with a limited time, number and size of questions. */
import type { Socket } from "node:net";
import { ConnectionLimit } from "../limits/connection-limit.ts";
import { FrameReader, frame } from "./forward/frames.ts";
import { MAX_QUERY_BYTES } from "./message.ts";
import type { Respond } from "./responder.ts";

export interface TcpServing {
  readonly respond: Respond;
  /** Time after which clients that wait for nothing are let go, and in which a question must be complete. */
  readonly idleMs: number;
}

const MAX_CLIENTS = 1_000;
/** Questions of one client that wait for an answer; it may ask more when some have one. */
const MAX_WAITING = 100;

/** All clients of one socket. When there are too many, a new one replaces one that waits for nothing. */
export class TcpClients {
  readonly #serving: TcpServing;
  readonly #limit = new ConnectionLimit(MAX_CLIENTS);
  readonly #clients = new Set<Socket>();

  constructor(serving: TcpServing) {
    this.#serving = serving;
  }

  add(client: Socket): void {
    this.#limit.add(client);
    this.#clients.add(client);
    client.on("close", () => this.#clients.delete(client));
    serveClient(client, this.#serving, this.#limit);
  }

  close(): void {
    for (const client of this.#clients) client.destroy();
  }
}

function serveClient(client: Socket, { respond, idleMs }: TcpServing, limit: ConnectionLimit): void {
  /** Questions without an answer. Name servers that are silent may take longer than an idle client is kept. */
  let waiting = 0;
  let isFull = false;
  let late: NodeJS.Timeout | undefined;
  const frames = new FrameReader(MAX_QUERY_BYTES);
  const resume = () => {
    if (!isFull && waiting < MAX_WAITING) client.resume();
  };
  const endIfDone = () => {
    if (client.readableEnded && waiting === 0) client.end();
  };
  const answer = async (message: Buffer) => {
    waiting++;
    limit.begin(client);
    const reply = await respond(message, { transport: "tcp", address: client.remoteAddress ?? "" });
    waiting--;
    limit.end(client);
    // Who does not read answers may not ask further.
    if (reply !== undefined && client.writable) isFull = !client.write(frame(reply));
    resume();
    endIfDone();
  };
  // Who has asked all there was to ask still wants the answers.
  client.allowHalfOpen = true;
  client.on("error", () => client.destroy());
  client.on("end", endIfDone);
  client.on("close", () => clearTimeout(late));
  client.setTimeout(idleMs);
  client.on("timeout", () => {
    if (waiting === 0) client.destroy();
  });
  client.on("data", (chunk) => {
    const messages = frames.read(chunk);
    if (messages === undefined) {
      client.destroy();
      return;
    }
    for (const message of messages) void answer(message);
    if (isFull || waiting >= MAX_WAITING) client.pause();
    // A client that sends a byte now and then is never idle.
    if (!frames.isPartial || messages.length > 0) late = void clearTimeout(late);
    if (frames.isPartial) late ??= setTimeout(() => client.destroy(), idleMs);
  });
  client.on("drain", () => {
    isFull = false;
    resume();
  });
}
