/**
 * The UDP sockets of the DNS proxy. They are opened before Envoy starts, so that an address which is taken is told in time,
 * and served while it does; what clients send in between waits.
 */
import { createSocket, type RemoteInfo, type Socket, type SocketOptions } from "node:dgram";
import { once } from "node:events";
import type { Server } from "node:net";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { type Held, holdEvents } from "./hold-events.ts";

export interface DnsUdpSocket {
  readonly host: string;
  readonly port: number;
  readonly socket: Socket;
  readonly messages: Held<[message: Buffer, from: RemoteInfo]>;
}

/** Opens a socket. An empty host means all addresses of IPv6 and IPv4, or of IPv4 where IPv6 is off; port 0 picks one. */
export async function openUdp(host: string, port: number): Promise<DnsUdpSocket> {
  if (host !== "") return bound(createUdp(familyOf(host)), host, port);
  try {
    return await openUdp("::", port);
  } catch (thrown) {
    if (!/EAFNOSUPPORT|EADDRNOTAVAIL/.test(errorText(thrown))) throw thrown;
    return openUdp("0.0.0.0", port);
  }
}

/** A socket that somebody has bound already. */
export function udpOf(host: string, socket: Socket): DnsUdpSocket {
  return { host, port: socket.address().port, socket, messages: holdEvents(socket, "message") };
}

/** Resolves when a socket listens; rejects, with where it was to, when it cannot. */
export async function listening(socket: Socket | Server, where: string): Promise<void> {
  try {
    await once(socket, "listening");
  } catch (cause) {
    socket.close();
    throw new MeshError("DNS_NOT_LISTENING", `Cannot serve DNS on ${where}`, { cause });
  }
}

async function bound(socket: Socket, host: string, port: number): Promise<DnsUdpSocket> {
  socket.bind(port, host);
  await listening(socket, `udp ${host}:${port}`);
  return udpOf(host, socket);
}

/** Clients are addresses: looking them up as names, which Node does for each packet, would be a quarter of an answer's cost. */
function createUdp(family: 4 | 6): Socket {
  let isBound = false;
  const socket = createSocket({
    type: `udp${family}`,
    lookup: (host, options, found) => {
      if (isBound) found(null, host, family);
      else lookUp(host, options, found);
    },
  });
  socket.on("listening", () => {
    isBound = true;
  });
  return socket;
}

/** Envoy's start waits for this: Node's module for names is loaded only where there is a name. */
const lookUp: NonNullable<SocketOptions["lookup"]> = (host, options, found) => {
  if (ADDRESS.test(host)) process.nextTick(found, null, host, familyOf(host));
  else void import("node:dns").then(({ lookup }) => lookup(host, options, found));
};

const ADDRESS = /:|^[\d.]+$/;

/** Cheaper than `isIPv6`, whose pattern takes milliseconds to be compiled. */
function familyOf(host: string): 4 | 6 {
  return host.includes(":") ? 6 : 4;
}
