/** The DNS proxy: names of the mesh are answered here, all others by the machine's name servers. UDP and TCP. */

import { createServer, type Socket, type Server as TcpServer } from "node:net";
import { errorText } from "#lib/mesh-error.ts";
import { type Frames, frame, readFrames } from "./frames.ts";
import { type Respond, type ResponderOptions, responder } from "./responder.ts";
import { type DnsUdpSocket, listening } from "./udp-socket.ts";

export interface DnsServerOptions extends ResponderOptions {
  /** TCP sockets that somebody opened already, by host. */
  readonly openedTcp?: ReadonlyMap<string, TcpServer> | undefined;
  /** Time after which TCP clients that wait for nothing are let go. */
  readonly tcpIdleMs?: number;
}

/** What there is beside the UDP sockets, whose owner closes them. */
export interface DnsServer {
  close(): Promise<void>;
}

const TCP_IDLE_MS = 8_000;
const MAX_TCP_CLIENTS = 1_000;

/** Serves UDP sockets, and TCP on the same addresses. Rejects when one of these cannot be opened. */
export async function startDnsServer(sockets: readonly DnsUdpSocket[], options: DnsServerOptions): Promise<DnsServer> {
  const { openedTcp, tcpIdleMs: idleMs = TCP_IDLE_MS } = options;
  const respond = responder(options);
  const opened: OpenTcp[] = [];
  const close = async () => void (await Promise.all(opened.map(closed)));
  try {
    for (const { host, port } of sockets)
      opened.push(await openTcp(host, port, { respond, idleMs, opened: openedTcp?.get(host) }));
  } catch (thrown) {
    await close();
    throw thrown;
  }
  for (const socket of sockets) serveUdp(socket, respond, options);
  return { close };
}

function serveUdp({ socket, messages }: DnsUdpSocket, respond: Respond, { log }: DnsServerOptions): void {
  let open = true;
  socket.on("close", () => {
    open = false;
  });
  // A client that is gone, or a packet that is too large for its network, concerns nobody else.
  socket.on("error", (thrown) => log.debug(`DNS over UDP: ${errorText(thrown)}`));
  messages.take((message, { address, port }) => {
    const send = (answer: Buffer) => {
      if (open) socket.send(answer, port, address);
    };
    const reply = respond(message, "udp");
    if (reply instanceof Promise) void reply.then(send);
    else if (reply !== undefined) send(reply);
  });
}

interface TcpServing {
  readonly respond: Respond;
  readonly idleMs: number;
}

interface OpenTcp {
  readonly server: TcpServer;
  readonly clients: ReadonlySet<Socket>;
}

async function openTcp(
  host: string,
  port: number,
  { opened, ...serving }: TcpServing & { readonly opened: TcpServer | undefined },
): Promise<OpenTcp> {
  const clients = new Set<Socket>();
  const server = opened ?? createServer();
  server.on("connection", (client) => {
    clients.add(client);
    client.on("close", () => clients.delete(client));
    serveClient(client, serving);
  });
  server.maxConnections = MAX_TCP_CLIENTS;
  if (opened === undefined) {
    server.listen(port, host);
    await listening(server, `tcp ${host}:${port}`);
  }
  return { server, clients };
}

function serveClient(client: Socket, { respond, idleMs }: TcpServing): void {
  /** Questions without an answer. Name servers that are silent may take longer than an idle client is kept. */
  let waiting = 0;
  const frames: Frames = { pending: Buffer.alloc(0) };
  // Who has asked all there was to ask still wants the answers.
  client.allowHalfOpen = true;
  const endIfDone = () => {
    if (client.readableEnded && waiting === 0) client.end();
  };
  client.on("error", () => client.destroy());
  client.on("end", endIfDone);
  client.setTimeout(idleMs);
  client.on("timeout", () => {
    if (waiting === 0) client.destroy();
  });
  client.on("data", (chunk) => {
    for (const message of readFrames(frames, chunk)) {
      waiting++;
      void Promise.resolve(respond(message, "tcp")).then((reply) => {
        waiting--;
        // Who does not read answers may not ask further.
        if (reply !== undefined && client.writable && !client.write(frame(reply))) client.pause();
        endIfDone();
      });
    }
  });
  client.on("drain", () => client.resume());
}

/** A server is closed when its last client is gone, and none of them may keep the agent from ending. */
function closed({ server, clients }: OpenTcp): Promise<void> {
  const whenClosed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  for (const client of clients) client.destroy();
  return whenClosed;
}
