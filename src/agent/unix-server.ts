import { Server, ServerCredentials, type ServiceDefinition, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { openUnixSocket, type UnixSocket } from "./unix-socket.ts";

export interface UnixService {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

/** Messages as they are on the wire. */
export const RAW = {
  requestSerialize: (bytes: Buffer) => bytes,
  requestDeserialize: (bytes: Buffer) => bytes,
  responseSerialize: (bytes: Buffer) => bytes,
  responseDeserialize: (bytes: Buffer) => bytes,
} as const;

export interface ServeOptions {
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Longer ones end their stream; without a limit unless given. */
  readonly maxRequestBytes?: number;
  /** On one connection; without a limit unless given. */
  readonly maxStreams?: number;
}

/** Serves gRPC on a socket, which is opened unless it is open already. */
export async function serveUnix(
  where: string | UnixSocket,
  services: readonly UnixService[],
  { signal, maxRequestBytes = -1, maxStreams }: ServeOptions,
): Promise<void> {
  const socket = typeof where === "string" ? await openUnixSocket(where) : where;
  const server = new Server({
    "grpc.max_receive_message_length": maxRequestBytes,
    ...(maxStreams === undefined ? {} : { "grpc.max_concurrent_streams": maxStreams }),
    "grpc.max_send_message_length": -1,
    "grpc.enable_channelz": 0,
  });
  for (const { definition, implementation } of services) server.addService(definition, implementation);
  const connections = server.createConnectionInjector(ServerCredentials.createInsecure());
  socket.serve((connection) => connections.injectConnection(connection));
  const end = () => {
    socket.close();
    server.forceShutdown();
  };
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
}
