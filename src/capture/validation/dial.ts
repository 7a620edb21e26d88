/** One connection, to find out where it ends. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Endpoint } from "./listeners.ts";

/** A connection under way. */
export interface Call {
  /** Waits for the answer of whoever picks up, but not beyond the signal. */
  arrival(greeting: string, signal: AbortSignal): Promise<Arrival>;
}

/** Port of ours that answered; otherwise why none did. */
export type Arrival = { readonly port: number } | { readonly failure: string };

/** Calls; resolves as soon as the socket is made, because then it does not matter any more who the process is. */
export async function startCall(to: Endpoint, from: string | undefined): Promise<Call> {
  const address = from === undefined ? {} : { localAddress: from };
  const socket = connect({ host: to.address, port: to.port, ...address });
  const answer = answerOf(socket);
  const begun = once(socket, "connectionAttempt").catch(() => undefined);
  await Promise.race([begun, answer]);
  return {
    arrival: async (greeting, signal) => {
      const hangUp = () => socket.destroy();
      signal.addEventListener("abort", hangUp, { once: true });
      if (signal.aborted) hangUp();
      const outcome = await answer;
      signal.removeEventListener("abort", hangUp);
      if ("failure" in outcome) return outcome;
      if (outcome.text.startsWith(`${greeting} `)) return { port: Number(outcome.text.slice(greeting.length)) };
      return { failure: signal.aborted ? "nobody answered" : "another program answered" };
    },
  };
}

/** All that is said until the connection ends. */
function answerOf(socket: Socket): Promise<{ readonly text: string } | { readonly failure: string }> {
  return new Promise((resolve) => {
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("error", (error) => resolve({ failure: reason(error) }));
    socket.on("close", () => resolve({ text }));
  });
}

/** Whether the kernel knows a way there. A datagram socket asks for it without sending anything. */
export async function hasRoute({ address, port }: Endpoint): Promise<boolean> {
  const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
  try {
    socket.connect(port, address);
    await once(socket, "connect");
    return true;
  } catch {
    // The one thing that can be wrong with an address is that nothing leads to it.
    return false;
  } finally {
    socket.close();
  }
}

function reason(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case "ECONNREFUSED":
      return "connection refused";
    case "ECONNRESET":
      return "connection reset";
    case "ENETUNREACH":
    case "EHOSTUNREACH":
      return "it cannot be reached";
    default:
      return error.message;
  }
}
