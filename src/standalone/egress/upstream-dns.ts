/** Questions that go on to the name servers of this machine, through a socket that belongs to its network. */
import { randomInt } from "node:crypto";
import type { Socket } from "node:dgram";
import { readFile } from "node:fs/promises";
import { isIPv4 } from "node:net";

export interface UpstreamDns {
  /** The answer of the first server that gives one; undefined when none does in time. */
  ask(query: Buffer): Promise<Buffer | undefined>;
  close(): void;
}

export interface UpstreamInput {
  readonly socket: Socket;
  /** Addresses of the servers to ask, in this order. */
  readonly servers: () => Promise<readonly string[]>;
  readonly port?: number;
  readonly timeoutMs?: number;
}

const DNS_PORT = 53;
const TIMEOUT_MS = 2000;
const HEADER_BYTES = 12;
/** More than a busy mesh has; a flood beyond it gets no answer. */
const MAX_WAITING = 4096;
const MAX_ID = 0x1_0000;

interface Waiting {
  readonly server: string;
  readonly resolve: (answer: Buffer | undefined) => void;
}

export function upstreamDns({ socket, servers, port = DNS_PORT, timeoutMs = TIMEOUT_MS }: UpstreamInput): UpstreamDns {
  const waiting = new Map<number, Waiting>();
  socket.on("message", (message, peer) => {
    if (message.length < HEADER_BYTES) return;
    const asked = waiting.get(message.readUInt16BE(0));
    // Only the server that was asked may answer.
    if (asked?.server === peer.address && peer.port === port) asked.resolve(message);
  });
  // A server that is not there makes a later send fail; the question runs into its time-out.
  socket.on("error", () => undefined);

  const askOne = (query: Buffer, server: string): Promise<Buffer | undefined> => {
    const id = freeId(waiting);
    const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
    const timer = setTimeout(() => resolve(undefined), timeoutMs);
    waiting.set(id, { server, resolve });
    socket.send(withId(query, id), port, server, () => undefined);
    return promise.finally(() => {
      clearTimeout(timer);
      waiting.delete(id);
    });
  };
  return {
    async ask(query) {
      if (query.length < HEADER_BYTES || waiting.size >= MAX_WAITING) return undefined;
      for (const server of await servers()) {
        const answer = await askOne(query, server);
        if (answer !== undefined) return withId(answer, query.readUInt16BE(0));
      }
      return undefined;
    },
    close() {
      for (const { resolve } of waiting.values()) resolve(undefined);
      socket.close();
    },
  };
}

/** The name servers of this machine as they are now; they change with the network that it is in. */
export async function machineNameServers(file = "/etc/resolv.conf"): Promise<readonly string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)]
    .map((match) => match[1] ?? "")
    .filter((address) => isIPv4(address));
}

/** Not to be guessed: whoever guesses it could answer in the place of the server. */
function freeId(waiting: ReadonlyMap<number, unknown>): number {
  let id = randomInt(MAX_ID);
  while (waiting.has(id)) id = randomInt(MAX_ID);
  return id;
}

/** Everybody numbers questions as they like: on the way through they get numbers of ours. */
function withId(message: Buffer, id: number): Buffer {
  const copy = Buffer.from(message);
  copy.writeUInt16BE(id, 0);
  return copy;
}
