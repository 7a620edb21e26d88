/** gRPC on the agent's sockets, for the Envoy beside it. */
import { grpcServer } from "#lib/grpc/server.ts";
import type { Methods } from "#lib/grpc/server-call.ts";
import { openUnixSocket, type UnixSocket } from "./unix-socket.ts";

export interface ServeOptions {
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Longer ones end their stream; without a limit unless given. */
  readonly maxRequestBytes?: number;
  /** On one connection; without a limit unless given. */
  readonly maxStreams?: number;
  /** Told of connections that cannot be had. */
  readonly failed?: (error: Error) => void;
}

/** Serves gRPC on a socket, which is opened unless it is open already. */
export async function serveUnix(
  where: string | UnixSocket,
  services: readonly Methods[],
  { signal, maxRequestBytes = -1, maxStreams, failed = () => undefined }: ServeOptions,
): Promise<void> {
  const socket = typeof where === "string" ? await openUnixSocket(where) : where;
  const methods: Methods = Object.assign({}, ...services);
  const server = grpcServer(methods, { maxMessageBytes: maxRequestBytes, maxStreams });
  socket.serve((connection) => server.take(connection), failed);
  const end = () => {
    socket.close();
    server.close();
  };
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
}
