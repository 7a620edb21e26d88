/**
 * Questions that the mesh does not answer go to the name servers of the machine, as they are, over the same transport. Only the id is
 * our own: an attacker who forges answers must not know it, and the client that asked may be the one who does.
 */
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { connect, isIPv6 } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";
import { MAX_TCP_BYTES, type Query } from "../message.ts";
import { FrameReader, frame } from "./frames.ts";
import { receivedAnswer } from "./received-answer.ts";

export type Transport = "udp" | "tcp";

export interface NameServer {
  readonly host: string;
  readonly port: number;
}

const TIMEOUT_MS = 5_000;

export interface Asking {
  readonly query: Query;
  readonly transport: Transport;
  /** Aborted with the reason for which nobody waits for an answer any more. */
  readonly signal: AbortSignal;
}

/** The answer of one server; rejects when there is none in time, or none that fits. */
export async function ask(asking: Asking, server: NameServer): Promise<Buffer> {
  const { query, transport } = asking;
  const own = { ...asking, query: { ...query, bytes: withId(query.bytes, randomInt(MAX_ID + 1)) } };
  const answer = await (transport === "udp" ? askUdp(own, server) : askTcp(own, server));
  return withId(answer, query.bytes.readUInt16BE(0));
}

const MAX_ID = 65_535;

function withId(message: Buffer, id: number): Buffer {
  const copy = Buffer.from(message);
  copy.writeUInt16BE(id, 0);
  return copy;
}

/** A socket of its own per question gives it a port of its own, which makes forged answers hard. */
function askUdp({ query, signal }: Asking, { host, port }: NameServer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(host.split("%")[0] ?? "") ? "udp6" : "udp4");
    const finish = (settle: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      socket.close();
      settle();
    };
    const fail = (reason: string, cause?: unknown) => finish(() => reject(failure(host, reason, cause)));
    const giveUp = () => fail(`was given up ${signal.reason}`);
    const timer = setTimeout(() => fail(`no answer in ${TIMEOUT_MS} ms`), TIMEOUT_MS);
    signal.addEventListener("abort", giveUp, { once: true });
    socket.on("error", (cause) => fail("cannot be asked", cause));
    socket.on("message", (message) => {
      const received = receivedAnswer(message, query);
      // Somebody else's answer may be a forged one; the server's may still come.
      if (received === "strange") return;
      if ("problem" in received) fail(received.problem);
      // Cut down to a hint to ask over TCP it would be of more use, but Istio's agent fails, and a recorded case asks for that.
      else if (message.length > query.maxUdpBytes)
        fail(`answered with ${message.length} bytes where ${query.maxUdpBytes} are allowed`);
      else finish(() => resolve(received.answer));
    });
    // Only packets of the server pass a connected socket. Failures come as errors of the socket, too.
    socket.on("connect", () => socket.send(query.bytes));
    socket.connect(port, host);
  });
}

function askTcp({ query, signal }: Asking, { host, port }: NameServer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const frames = new FrameReader(MAX_TCP_BYTES);
    const finish = (settle: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      socket.destroy();
      settle();
    };
    const fail = (reason: string, cause?: unknown) => finish(() => reject(failure(host, reason, cause)));
    const giveUp = () => fail(`was given up ${signal.reason}`);
    const timer = setTimeout(() => fail(`no answer in ${TIMEOUT_MS} ms`), TIMEOUT_MS);
    signal.addEventListener("abort", giveUp, { once: true });
    socket.on("error", (cause) => fail("cannot be asked", cause));
    socket.on("end", () => fail("closed the connection"));
    socket.on("data", (chunk) => {
      const [message] = frames.read(chunk) ?? [];
      if (message === undefined) return;
      const received = receivedAnswer(message, query);
      if (received === "strange") fail("answered another question");
      else if ("problem" in received) fail(received.problem);
      else finish(() => resolve(received.answer));
    });
    socket.write(frame(query.bytes));
  });
}

function failure(host: string, reason: string, cause: unknown): MeshError {
  return new MeshError("DNS_SERVER_FAILED", `Name server ${host} ${reason}`, cause === undefined ? {} : { cause });
}
