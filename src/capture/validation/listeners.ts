/** Stands in for Envoy: whoever is redirected to one of its ports is told which port that is. */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";

/** An address and port to listen on. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** `127.0.0.1:15001`, `[::1]:15001`. */
export function formatEndpoint({ address, port }: Endpoint): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** A listener that answers every connection with its greeting and its port, until it is disposed of. */
export async function greet(endpoint: Endpoint, greeting: string): Promise<AsyncDisposable> {
  const server = createServer((socket) => {
    // A caller that leaves early has no need of the answer.
    socket.on("error", () => undefined);
    socket.end(`${greeting} ${endpoint.port}\n`);
  });
  // As Istio does: a second run must not fail because of the first.
  server.listen({ host: endpoint.address, port: endpoint.port, reusePort: true });
  try {
    await once(server, "listening");
  } catch (cause) {
    throw new MeshError("CAPTURE_INEFFECTIVE", `Cannot listen on ${formatEndpoint(endpoint)}`, { cause });
  }
  return { [Symbol.asyncDispose]: () => close(server) };
}

async function close(server: Server): Promise<void> {
  server.close();
  await once(server, "close");
}
