/** The DNS proxy: names of the mesh are answered here, all others by the machine's name servers. UDP and TCP. */

import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { lookup } from "node:dns";
import { once } from "node:events";
import { createServer, isIPv6, type Socket, type Server as TcpServer } from "node:net";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { type Frames, frame, readFrames } from "./frames.ts";
import { type Respond, type ResponderOptions, responder } from "./responder.ts";

export interface DnsServerOptions extends ResponderOptions {
  /** One UDP and one TCP socket on each; empty for all addresses. */
  readonly hosts: readonly string[];
  /** Sockets that somebody opened already, by host. */
  readonly opened?: ReadonlyMap<string, { readonly udp: UdpSocket; readonly tcp: TcpServer }> | undefined;
  /** 0 picks a free one. */
  readonly port: number;
}

export interface DnsServer {
  /** By host, in the order of the options. */
  readonly ports: readonly number[];
  close(): Promise<void>;
}

const TCP_IDLE_MS = 8_000;
const MAX_TCP_CLIENTS = 1_000;
const PICKED_PORTS = 10;

/** Opens all sockets. Rejects when one of them cannot be opened. */
export async function startDnsServer(options: DnsServerOptions): Promise<DnsServer> {
  const closers: (() => Promise<void>)[] = [];
  const ports: number[] = [];
  const close = async () => void (await Promise.all(closers.map((closer) => closer())));
  const input = { ...options, respond: responder(options) };
  try {
    for (const host of options.hosts) {
      const { udp, tcp } = host === "" ? await openEverywhere(input) : await openPair(host, input);
      closers.push(
        () => closed(udp),
        () => closed(tcp.server).finally(tcp.destroyClients),
      );
      const { port } = udp.address();
      ports.push(port);
      options.log.info(`Starting local udp and tcp DNS server on ${host}:${port}`);
    }
  } catch (thrown) {
    await close();
    throw thrown;
  }
  return { ports, close };
}

interface OpenInput extends DnsServerOptions {
  readonly respond: Respond;
}

/** All addresses means IPv6 and IPv4, or IPv4 where IPv6 is off. */
async function openEverywhere(input: OpenInput) {
  try {
    return await openPair("::", input);
  } catch (thrown) {
    if (!/EAFNOSUPPORT|EADDRNOTAVAIL/.test(errorText(thrown))) throw thrown;
    return openPair("0.0.0.0", input);
  }
}

/** UDP and TCP on one port. A port that is picked may be free for one of them only, so others are tried. */
async function openPair(host: string, options: OpenInput, tries = PICKED_PORTS) {
  const udp = await openUdp(host, options.port, options);
  try {
    return { udp, tcp: await openTcp(host, udp.address().port, options) };
  } catch (thrown) {
    await closed(udp);
    if (options.port !== 0 || tries === 1) throw thrown;
    return openPair(host, options, tries - 1);
  }
}

async function openUdp(host: string, port: number, options: OpenInput): Promise<UdpSocket> {
  const opened = options.opened?.get(host)?.udp;
  const socket = opened ?? createUdp(isIPv6(host) ? 6 : 4);
  let open = true;
  socket.on("close", () => {
    open = false;
  });
  socket.on("message", (message, { address, port: clientPort }) => {
    const send = (answer: Buffer) => {
      if (open) socket.send(answer, clientPort, address);
    };
    const reply = options.respond(message, "udp");
    if (reply instanceof Promise) void reply.then(send);
    else if (reply !== undefined) send(reply);
  });
  if (opened === undefined) {
    socket.bind(port, host);
    await listening(socket, `udp ${host}:${port}`);
  }
  // A client that is gone, or a packet that is too large for its network, concerns nobody else.
  socket.on("error", (thrown) => options.log.debug(`DNS over UDP: ${errorText(thrown)}`));
  return socket;
}

/** Clients are addresses: looking them up as names, which Node does for each packet, would be a quarter of an answer's cost. */
function createUdp(family: 4 | 6): UdpSocket {
  let bound = false;
  const socket = createSocket({
    type: `udp${family}`,
    lookup: (host, options, found) => (bound ? found(null, host, family) : lookup(host, options, found)),
  });
  socket.on("listening", () => {
    bound = true;
  });
  return socket;
}

async function openTcp(host: string, port: number, options: OpenInput) {
  const clients = new Set<Socket>();
  const opened = options.opened?.get(host)?.tcp;
  const server = opened ?? createServer();
  server.on("connection", (client) => {
    clients.add(client);
    client.on("close", () => clients.delete(client));
    client.on("error", () => client.destroy());
    client.setTimeout(TCP_IDLE_MS, () => client.destroy());
    const frames: Frames = { pending: Buffer.alloc(0) };
    client.on("data", (chunk) => {
      for (const message of readFrames(frames, chunk)) {
        void Promise.resolve(options.respond(message, "tcp")).then((reply) => {
          // Who does not read answers may not ask further.
          if (reply !== undefined && client.writable && !client.write(frame(reply))) client.pause();
        });
      }
    });
    client.on("drain", () => client.resume());
  });
  server.maxConnections = MAX_TCP_CLIENTS;
  if (opened === undefined) {
    server.listen(port, host);
    await listening(server, `tcp ${host}:${port}`);
  }
  const destroyClients = () => {
    for (const client of clients) client.destroy();
  };
  return { server, destroyClients };
}

async function listening(socket: UdpSocket | TcpServer, where: string): Promise<void> {
  try {
    await once(socket, "listening");
  } catch (cause) {
    socket.close();
    throw new MeshError("DNS_NOT_LISTENING", `Cannot serve DNS on ${where}`, { cause });
  }
}

function closed(socket: UdpSocket | TcpServer): Promise<void> {
  return new Promise((resolve) => {
    socket.close(() => resolve());
  });
}
