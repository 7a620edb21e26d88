/** Floods of TLS before a handshake is complete. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface TlsFlood {
  readonly name: string;
  readonly run: (port: number, endAt: number) => Promise<void>;
}

const CONNECTIONS = 1_000;

/** The first message of a handshake. */
async function clientHello(): Promise<Buffer> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const client = connectTls({ host: "127.0.0.1", port, ALPNProtocols: ["h2"] }).on("error", () => undefined);
  const [socket] = (await once(server, "connection")) as [Socket];
  const [hello] = (await once(socket, "data")) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return hello;
}

/** Many connections that send these bytes and then wait. */
async function opened(port: number, bytes: Buffer, endAt: number): Promise<void> {
  const sockets = Array.from({ length: CONNECTIONS }, () => connect({ host: "127.0.0.1", port }));
  for (const socket of sockets) {
    socket.on("error", () => undefined);
    socket.on("connect", () => socket.write(bytes));
    socket.resume();
  }
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, endAt - performance.now())));
  for (const socket of sockets) socket.destroy();
}

export const TLS_FLOODS: readonly TlsFlood[] = [
  { name: "half-open TLS", run: async (port, endAt) => opened(port, await clientHello(), endAt) },
  {
    name: "half a ClientHello",
    run: async (port, endAt) => opened(port, (await clientHello()).subarray(0, 50), endAt),
  },
  { name: "connections that send nothing", run: (port, endAt) => opened(port, Buffer.alloc(0), endAt) },
  { name: "nonsense in place of TLS", run: (port, endAt) => opened(port, Buffer.alloc(1_000, 0x41), endAt) },
];
