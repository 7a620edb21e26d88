/**
 * Published ports. The sockets that listen belong to the machine's own network: whoever starts the mesh opens them there
 * and hands them over. What they accept is passed on from here, inside the fabric, like traffic from outside the cluster.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

export interface Destination {
  readonly address: string;
  readonly port: number;
}

const CONNECT_TIMEOUT_MS = 10_000;

/** Passes on what arrives at a listening server that was handed over. Returns the way to stop. */
export function forward(listening: Server, destination: Destination): () => void {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const target = connect({ host: destination.address, port: destination.port, allowHalfOpen: true, noDelay: true });
    target.setTimeout(CONNECT_TIMEOUT_MS, () => target.destroy());
    target.once("connect", () => target.setTimeout(0));
    for (const [socket, other] of [
      [client, target],
      [target, client],
    ] as const) {
      open.add(socket);
      // A side that breaks takes the other one with it, so that both ends see what happened.
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        open.delete(socket);
        other.destroySoon();
      });
    }
    client.pipe(target).pipe(client);
  });
  server.listen(listening);
  return () => {
    server.close();
    for (const socket of open) socket.destroy();
  };
}
