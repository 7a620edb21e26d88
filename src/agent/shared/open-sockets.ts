/**
 * What a short-lived process does inside a workload's network namespace, which its agent cannot enter: it opens the
 * sockets that the agent listens on, hands them over, and tells which addresses and name servers there are.
 */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, isIPv6, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import { errorText } from "#lib/mesh-error.ts";
import { parseResolvConf } from "../dns/resolv-conf.ts";
import type { Interfaces } from "../instance-addresses.ts";
import { listenAddresses } from "../plan-dns.ts";

export interface SocketsWanted {
  /** 0 for none. */
  readonly statusPort: number;
  /** DNS_PROXY_ADDR; undefined without DNS. */
  readonly dnsAddress?: string | undefined;
}

/** In the order in which they are sent; sockets come with those that name them. */
export type SocketsMessage =
  | { readonly kind: "facts"; readonly interfaces: Interfaces; readonly resolvConf: string }
  | { readonly kind: "status" }
  | { readonly kind: "dns-udp" | "dns-tcp"; readonly host: string }
  | { readonly kind: "done" }
  | { readonly kind: "error"; readonly message: string };

export type SendMessage = (message: SocketsMessage, handle?: Server | UdpSocket) => Promise<void>;

const RESOLV_CONF = "/etc/resolv.conf";

/** Opens and sends all of them; a failure is sent too. */
export async function openSockets(wanted: SocketsWanted, send: SendMessage): Promise<void> {
  try {
    const resolvConf = await readFile(RESOLV_CONF, "utf8").catch(() => "");
    await send({ kind: "facts", interfaces: networkInterfaces(), resolvConf });
    if (wanted.statusPort > 0) await send({ kind: "status" }, await tcp(wanted.statusPort, "::"));
    if (wanted.dnsAddress !== undefined) {
      const { hosts, port } = listenAddresses(wanted.dnsAddress, parseResolvConf(resolvConf));
      for (const host of hosts) {
        await send({ kind: "dns-udp", host }, await udp(port, host));
        await send({ kind: "dns-tcp", host }, await tcp(port, host));
      }
    }
    await send({ kind: "done" });
  } catch (thrown) {
    await send({ kind: "error", message: errorText(thrown) });
  }
}

async function tcp(port: number, host: string): Promise<Server> {
  const server = createServer().listen(port, host);
  try {
    await once(server, "listening");
  } catch (thrown) {
    // A namespace without IPv6.
    if (host === "::" && /EAFNOSUPPORT|EADDRNOTAVAIL/.test(errorText(thrown))) return tcp(port, "0.0.0.0");
    throw thrown;
  }
  return server;
}

async function udp(port: number, host: string): Promise<UdpSocket> {
  const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
  socket.bind(port, host);
  await once(socket, "listening");
  return socket;
}
