/** The fabric's name server, on UDP and TCP. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { dnsAnswer, outsideAnswer, outsideQuestion, serverFailure } from "./dns-answer.ts";
import { outsideName } from "./dns-question.ts";
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
  /** For names of the world outside; without it they do not exist. */
  readonly outside?: OutsideNames | undefined;
}

export interface OutsideNames {
  /** Asks name servers outside; undefined when none answers. Absent in a mesh without a way out. */
  readonly ask?: ((query: Buffer) => Promise<Buffer | undefined>) | undefined;
  /** A name was asked for from this address, and there is no way out. */
  readonly onRefused?: ((name: string, from: string) => void) | undefined;
}

const MAX_TCP_BYTES = 4096;
const TCP_IDLE_MS = 10_000;
const MAX_ATTEMPTS = 10;

/** Starts the server; it answers when the promise resolves. */
export async function serveDns(input: DnsInput): Promise<DnsServer> {
  let { table } = input;
  let closed = false;
  const answer: Answerer = async ({ query, from, transport }) => {
    const name = input.outside === undefined ? undefined : outsideName(query, table);
    if (name !== undefined && input.outside?.ask !== undefined) {
      const asked = { query, table, transport };
      const found = await input.outside.ask(outsideQuestion(query, name));
      return (found && outsideAnswer(asked, found)) ?? serverFailure(query);
    }
    if (name !== undefined) input.outside?.onRefused?.(name, from);
    return dnsAnswer({ query, table, transport });
  };
  const { udp, tcp } = await bothSockets(input);
  udp.on("message", async (query, peer) => {
    const message = await answer({ query, from: peer.address, transport: "udp" });
    if (message !== undefined && !closed) udp.send(message, peer.port, peer.address, () => undefined);
  });
  tcp.on("connection", (socket) => answerTcp(socket, answer));
  // A caller that is gone makes the next send fail; nobody is left to be told.
  udp.on("error", () => undefined);
  return {
    port: udp.address().port,
    replace(next) {
      table = next;
    },
    close() {
      closed = true;
      udp.close();
      tcp.close();
    },
  };
}

/** A port that is free for UDP may be taken for TCP; where any will do another one is tried. */
async function bothSockets({
  address,
  port: wanted,
}: DnsInput): Promise<{ readonly udp: UdpSocket; readonly tcp: Server }> {
  for (let attempt = 1; ; attempt++) {
    const udp = createSocket("udp4").bind(wanted, address);
    await once(udp, "listening");
    const tcp = createServer().listen(udp.address().port, address);
    try {
      await once(tcp, "listening");
      return { udp, tcp };
    } catch (problem) {
      udp.close();
      if (wanted !== 0 || attempt === MAX_ATTEMPTS) throw problem;
    }
  }
}

interface Asked {
  readonly query: Buffer;
  readonly from: string;
  readonly transport: "udp" | "tcp";
}

/** Undefined for what is not a query. */
type Answerer = (asked: Asked) => Promise<Buffer | undefined>;

/** Each message has its length in front of it, in two bytes. Answers go out in the order in which they are ready. */
function answerTcp(socket: Socket, answer: Answerer): void {
  let received = Buffer.alloc(0);
  const from = socket.remoteAddress ?? "";
  const reply = async (query: Buffer) => {
    const message = await answer({ query, from, transport: "tcp" });
    if (message === undefined) socket.destroy();
    else if (socket.writable) socket.write(Buffer.concat([lengthOf(message), message]));
  };
  socket.setTimeout(TCP_IDLE_MS, () => socket.destroy());
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
      const end = 2 + received.readUInt16BE(0);
      void reply(received.subarray(2, end));
      received = received.subarray(end);
    }
    if (received.length > MAX_TCP_BYTES) socket.destroy();
  });
}

function lengthOf(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return length;
}
