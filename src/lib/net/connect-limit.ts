/** Limits how long a connection attempt may take: a peer that drops packets never refuses one, and the kernel waits for minutes. */
import type { ClientRequest } from "node:http";

/** For looking up the name, TCP, TLS and, where there is one, the tunnel through a proxy together. */
export const CONNECT_TIMEOUT_MS = 5_000;

/** The error of an attempt that took too long, in the form of the kernel's own errors. */
export function connectTimeout(address: string, timeoutMs: number): Error {
  const error = new Error(`connect ETIMEDOUT ${address}: no connection in ${timeoutMs / 1000} s`);
  return Object.assign(error, { code: "ETIMEDOUT", syscall: "connect" });
}

/** Ends a request that has no connection in time. It does not limit the answer, nor a request on a kept connection. */
export function limitConnecting(request: ClientRequest): void {
  const late = () => request.destroy(connectTimeout(request.host, CONNECT_TIMEOUT_MS));
  const timer = setTimeout(late, CONNECT_TIMEOUT_MS);
  const done = () => clearTimeout(timer);
  request.on("socket", (socket) => {
    const isSecuring = "secureConnecting" in socket && socket.secureConnecting === true;
    if (isSecuring) socket.once("secureConnect", done);
    else if (socket.connecting) socket.once("connect", done);
    else done();
  });
  request.once("close", done);
}
