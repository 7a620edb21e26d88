/** The DNS proxy: names of the mesh are answered here, all others by the machine's name servers. UDP and TCP. */

import { createServer, type Server as TcpServer } from "node:net";
import { errorText } from "#lib/mesh-error.ts";
import { type Respond, type ResponderOptions, responder } from "./responder.ts";
import { TcpClients, type TcpServing } from "./tcp-clients.ts";
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
    const reply = respond(message, { transport: "udp", address });
    if (reply instanceof Promise) void reply.then(send);
    else if (reply !== undefined) send(reply);
  });
}

interface OpenTcp {
  readonly server: TcpServer;
  readonly clients: TcpClients;
}

interface TcpInput extends TcpServing {
  readonly opened: TcpServer | undefined;
}

async function openTcp(host: string, port: number, { opened, ...serving }: TcpInput): Promise<OpenTcp> {
  const clients = new TcpClients(serving);
  const server = opened ?? createServer();
  server.on("connection", (client) => clients.add(client));
  if (opened === undefined) {
    server.listen(port, host);
    await listening(server, `tcp ${host}:${port}`);
  }
  return { server, clients };
}

/** A server is closed when its last client is gone, and none of them may keep the agent from ending. */
function closed({ server, clients }: OpenTcp): Promise<void> {
  const whenClosed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  clients.close();
  return whenClosed;
}
