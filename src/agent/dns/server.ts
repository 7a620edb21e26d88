/** The DNS proxy: names of the mesh are answered here, all others by the machine's name servers. UDP and TCP. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, isIPv6, type Socket, type Server as TcpServer } from "node:net";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { AgentMetrics } from "../metrics.ts";
import { ask, type NameServer, type Transport } from "./forward.ts";
import { type Frames, frame, readFrames } from "./frames.ts";
import { errorAnswer, isQuery, MAX_TCP_BYTES, parseQuery, type Query, RCODE_SERVER_FAILURE } from "./message.ts";
import type { MeshResolver } from "./resolver.ts";
import { random16, shuffled } from "./shuffle.ts";

export interface DnsServerOptions {
  /** One UDP and one TCP socket on each. */
  readonly hosts: readonly string[];
  /** Sockets that somebody opened already, by host. */
  readonly opened?: ReadonlyMap<string, { readonly udp: UdpSocket; readonly tcp: TcpServer }> | undefined;
  /** 0 picks a free one. */
  readonly port: number;
  readonly resolver: MeshResolver;
  readonly nameServers: readonly NameServer[];
  /** DNS_FORWARD_PARALLEL: ask all name servers at once and take the first answer. */
  readonly forwardParallel: boolean;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
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
  try {
    for (const host of options.hosts) {
      const { udp, tcp } = await openPair(host, options);
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

/** UDP and TCP on one port. A port that is picked may be free for one of them only, so others are tried. */
async function openPair(host: string, options: DnsServerOptions, tries = PICKED_PORTS) {
  const udp = await openUdp(host, options.port, options);
  try {
    return { udp, tcp: await openTcp(host, udp.address().port, options) };
  } catch (thrown) {
    await closed(udp);
    if (options.port !== 0 || tries === 1) throw thrown;
    return openPair(host, options, tries - 1);
  }
}

async function openUdp(host: string, port: number, options: DnsServerOptions): Promise<UdpSocket> {
  const opened = options.opened?.get(host)?.udp;
  const socket = opened ?? createSocket(isIPv6(host) ? "udp6" : "udp4");
  let open = true;
  socket.on("close", () => {
    open = false;
  });
  socket.on("message", (message, { address, port: clientPort }) => {
    const send = (answer: Buffer) => {
      if (open) socket.send(answer, clientPort, address);
    };
    const reply = respond(message, "udp", options);
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

async function openTcp(host: string, port: number, options: DnsServerOptions) {
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
        void Promise.resolve(respond(message, "tcp", options)).then((reply) => {
          if (reply !== undefined && client.writable) client.write(frame(reply));
        });
      }
    });
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

/** The answer: at once from the name table, later from a name server, or none to what is no question. */
function respond(
  message: Buffer,
  transport: Transport,
  options: DnsServerOptions,
): Buffer | Promise<Buffer> | undefined {
  const query = parseQuery(message);
  if (query === undefined) return undefined;
  options.metrics.dnsRequests.add();
  if (!isQuery(query)) return errorAnswer(message, query.rcode);
  if (!options.resolver.ready) return errorAnswer(message, RCODE_SERVER_FAILURE, query.questionEnd);
  const maxBytes = transport === "tcp" ? MAX_TCP_BYTES : query.maxUdpBytes;
  return options.resolver.answer(query, maxBytes) ?? forward(query, transport, options);
}

async function forward(query: Query, transport: Transport, options: DnsServerOptions): Promise<Buffer> {
  const { metrics, log, nameServers, forwardParallel } = options;
  metrics.dnsUpstreamRequests.add();
  const startedAt = performance.now();
  const one = (server: NameServer) => ask(query, server, transport);
  try {
    const servers = shuffled(nameServers, random16);
    return await (forwardParallel ? Promise.any(servers.map(one)) : firstAnswer(servers, one));
  } catch (thrown) {
    metrics.dnsUpstreamFailures.add();
    const reasons = thrown instanceof AggregateError ? thrown.errors.map(errorText).join("; ") : errorText(thrown);
    log.info(`No answer for "${query.name}": ${reasons}`);
    return errorAnswer(query.bytes, RCODE_SERVER_FAILURE, query.questionEnd);
  } finally {
    metrics.dnsUpstreamSeconds.observe((performance.now() - startedAt) / 1000);
  }
}

async function firstAnswer(
  servers: readonly NameServer[],
  one: (server: NameServer) => Promise<Buffer>,
): Promise<Buffer> {
  const failures: unknown[] = [];
  for (const server of servers) {
    try {
      return await one(server);
    } catch (thrown) {
      failures.push(thrown);
    }
  }
  throw new AggregateError(
    failures.length > 0 ? failures : [new MeshError("DNS_SERVER_FAILED", "resolv.conf names no server")],
  );
}

async function listening(socket: UdpSocket | TcpServer, where: string): Promise<void> {
  try {
    await once(socket, "listening");
  } catch (cause) {
    throw new MeshError("DNS_NOT_LISTENING", `Cannot serve DNS on ${where}`, { cause });
  }
}

function closed(socket: UdpSocket | TcpServer): Promise<void> {
  return new Promise((resolve) => {
    socket.close(() => resolve());
  });
}
