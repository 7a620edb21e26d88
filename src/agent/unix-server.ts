import { chmod, mkdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { dirname } from "node:path";
import { Server, ServerCredentials, type ServiceDefinition, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { MeshError } from "#lib/mesh-error.ts";

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

/** Serves on a socket that only the own user can open, in place of what an earlier run left there. Ends with the signal. */
export async function serveUnix(path: string, services: readonly UnixService[], signal: AbortSignal): Promise<void> {
  const server = new Server({
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
    "grpc.enable_channelz": 0,
  });
  for (const { definition, implementation } of services) server.addService(definition, implementation);
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    // grpc-js reports a file that is in the way in words that do not say so.
    await rm(path, { force: true });
    await bind(server, path);
    await chmod(path, 0o600);
  } catch (cause) {
    server.forceShutdown();
    throw new MeshError("SOCKET_NOT_SERVED", `Cannot serve on socket ${path}`, { cause });
  }
  signal.addEventListener("abort", () => server.forceShutdown(), { once: true });
  if (signal.aborted) server.forceShutdown();
}

/** True when somebody answers on the socket. */
export function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const settle = (served: boolean) => {
      socket.destroy();
      resolve(served);
    };
    socket.on("connect", () => settle(true));
    socket.on("error", () => settle(false));
  });
}

function bind(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
}
