import { connect } from "node:net";
import type { Connect } from "../../place.ts";

/** Connections from one of the machine's own addresses. */
export function connectFrom(localAddress: string): Connect {
  return ({ host, port }, signal) =>
    new Promise((resolve, reject) => {
      const socket = connect({ host, port, localAddress });
      const cut = () => socket.destroy(signal.reason);
      signal.addEventListener("abort", cut, { once: true });
      socket.once("close", () => signal.removeEventListener("abort", cut));
      socket.once("error", reject);
      socket.once("connect", () => resolve(socket));
      if (signal.aborted) cut();
    });
}
