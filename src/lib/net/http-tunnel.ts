import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { MeshError } from "../mesh-error.ts";
import { bareHost } from "./bare-host.ts";

const HTTP_OK = 200;

/** A connection to `host:port` through a proxy, of which this is the URL. Rejects when there is none before the signal is aborted. */
export function openTunnel(url: string, address: string, signal: AbortSignal): Promise<Socket> {
  const proxy = new URL(url);
  return new Promise((resolve, reject) => {
    const request = proxy.protocol === "https:" ? httpsRequest : httpRequest;
    const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
    const outgoing = request({
      host: bareHost(proxy),
      ...(proxy.port !== "" && { port: proxy.port }),
      method: "CONNECT",
      path: address,
      headers: {
        host: address,
        ...(credentials !== ":" && { "proxy-authorization": `Basic ${Buffer.from(credentials).toString("base64")}` }),
      },
      agent: false,
    });
    const cut = () => void outgoing.destroy(signal.reason);
    signal.addEventListener("abort", cut, { once: true });
    if (signal.aborted) cut();
    const failed = (cause: unknown) =>
      reject(new MeshError("HTTP_FAILED", `No connection to ${address} through the proxy ${proxy.host}`, { cause }));
    outgoing.on("error", failed);
    outgoing.on("close", () => signal.removeEventListener("abort", cut));
    // An answer with content is no tunnel.
    outgoing.on("response", ({ statusCode }) => {
      outgoing.destroy();
      failed(new Error(`it answered ${statusCode}`));
    });
    outgoing.on("connect", ({ statusCode }, socket, head) => {
      signal.removeEventListener("abort", cut);
      if (statusCode !== HTTP_OK) {
        socket.destroy();
        failed(new Error(`it answered ${statusCode}`));
        return;
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    outgoing.end();
  });
}
