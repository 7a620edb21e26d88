import { request } from "node:http";
import { MeshError } from "#lib/mesh-error.ts";
import type { Connect } from "../place.ts";
import { DESTINATION_HEADER } from "./inside-listener.ts";

/** Connections to addresses behind the socket of `withInsideListener()`. */
export function tunnelThrough(socketPath: string): Connect {
  return ({ host, port }, signal) =>
    new Promise((resolve, reject) => {
      const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
      const headers = { [DESTINATION_HEADER]: address };
      const outgoing = request({ socketPath, method: "CONNECT", path: address, headers, agent: false });
      const cut = () => outgoing.destroy(signal.reason);
      signal.addEventListener("abort", cut, { once: true });
      outgoing.on("error", reject);
      outgoing.on("close", () => signal.removeEventListener("abort", cut));
      outgoing.on("connect", (response, socket, head) => {
        signal.removeEventListener("abort", cut);
        if (response.statusCode !== 200) {
          socket.destroy();
          reject(new MeshError("HTTP_FAILED", `No connection to ${address}: Envoy answered ${response.statusCode}`));
          return;
        }
        const end = () => socket.destroy(signal.reason);
        signal.addEventListener("abort", end, { once: true });
        socket.once("close", () => signal.removeEventListener("abort", end));
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      if (signal.aborted) cut();
      outgoing.end();
    });
}
