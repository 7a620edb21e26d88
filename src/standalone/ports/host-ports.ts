/** Opens the published ports on this machine's loopback addresses. */
import { once } from "node:events";
import { createServer, isIPv6, type Server } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";
import type { PublishedPort } from "../status/status.ts";
import type { WantedPort } from "./published.ts";

export interface OpenPort {
  readonly port: PublishedPort;
  readonly server: Server;
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "is in use by another process",
  EACCES: "may not be opened by this user",
  EADDRNOTAVAIL: "has an address that this machine does not have",
};

/** Opens all of them, or none. */
export async function openHostPorts(wanted: readonly WantedPort[], freePorts: boolean): Promise<OpenPort[]> {
  const open: OpenPort[] = [];
  try {
    for (const { member, publish } of wanted) {
      const { text, host, hostPort, port } = publish;
      const server = createServer().listen({ host, port: freePorts ? 0 : hostPort });
      await once(server, "listening").catch((cause: unknown) => {
        throw portError({ name: member.slice(0, member.indexOf(".")), text, hostPort, cause });
      });
      open.push({ port: { address: addressOf(server), member, port, entry: text }, server });
    }
    return open;
  } catch (error) {
    for (const { server } of open) server.close();
    throw error;
  }
}

interface Refused {
  readonly name: string;
  readonly text: string;
  readonly hostPort: number;
  readonly cause: unknown;
}

function portError({ name, text, hostPort, cause }: Refused): MeshError {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const reason = REASONS[code] ?? "cannot be opened";
  const hint = code === "EADDRINUSE" ? "; stop that process, change the entry, or use --free-ports" : "";
  return new MeshError("PORT_UNAVAILABLE", `Cannot publish "${text}" of "${name}": port ${hostPort} ${reason}${hint}`);
}

function addressOf(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a listening server has an address");
  return `${isIPv6(address.address) ? `[${address.address}]` : address.address}:${address.port}`;
}
