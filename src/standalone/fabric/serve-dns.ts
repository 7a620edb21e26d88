/** The fabric's name server, on UDP and TCP. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { dnsAnswer } from "./dns-answer.ts";
import type { HostTable } from "./names.ts";

export interface DnsServer {
  /** Answers from this table from now on. */
  replace(table: HostTable): void;
  readonly port: number;
  close(): void;
}

export interface DnsInput {
  readonly address: string;
  /** 0 picks a free one. */
  readonly port: number;
  readonly table: HostTable;
}

const MAX_TCP_BYTES = 4096;
const TCP_IDLE_MS = 10_000;

/** Starts the server; it answers when the promise resolves. */
export async function serveDns(input: DnsInput): Promise<DnsServer> {
  let table = input.table;
  const udp = createSocket("udp4");
  udp.on("message", (query, peer) => {
    const answer = dnsAnswer({ query, table, transport: "udp" });
    if (answer !== undefined) udp.send(answer, peer.port, peer.address);
  });
  udp.bind(input.port, input.address);
  await once(udp, "listening");
  // A caller that is gone makes the next send fail; nobody is left to be told.
  udp.on("error", () => undefined);

  const { port } = udp.address();
  const tcp = createServer((socket) => answerTcp(socket, () => table)).listen(port, input.address);
  await once(tcp, "listening");
  return {
    port,
    replace(next) {
      table = next;
    },
    close() {
      udp.close();
      tcp.close();
    },
  };
}

/** Each message has its length in front of it, in two bytes. */
function answerTcp(socket: Socket, table: () => HostTable): void {
  let received = Buffer.alloc(0);
  socket.setTimeout(TCP_IDLE_MS, () => socket.destroy());
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
      const end = 2 + received.readUInt16BE(0);
      const answer = dnsAnswer({ query: received.subarray(2, end), table: table(), transport: "tcp" });
      received = received.subarray(end);
      if (answer === undefined) socket.destroy();
      else socket.write(Buffer.concat([lengthOf(answer), answer]));
    }
    if (received.length > MAX_TCP_BYTES) socket.destroy();
  });
}

function lengthOf(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return length;
}
