/** Methods on a free port of this machine, or on a socket file. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { Admission } from "#lib/admission/admission.ts";
import { grpcServer } from "#lib/grpc/server.ts";
import type { Methods } from "#lib/grpc/server-call.ts";

export interface ServedMethods extends AsyncDisposable {
  /** Such as `127.0.0.1:4711`; the socket file where one was given. */
  readonly address: string;
  /** Lets calls finish for a second, then cuts them. */
  stop(): Promise<void>;
}

export interface Serving {
  readonly socketFile?: string;
  readonly maxMessageBytes?: number;
  readonly admission?: Admission;
}

export async function serveMethods(methods: Methods, options: Serving = {}): Promise<ServedMethods> {
  const { socketFile, maxMessageBytes = -1, admission = new Admission() } = options;
  const grpc = grpcServer(methods, { maxMessageBytes, maxStreams: undefined, admission });
  const listener = createServer((socket) => grpc.take(socket));
  listener.listen(socketFile === undefined ? { host: "127.0.0.1", port: 0 } : { path: socketFile });
  await once(listener, "listening");
  const stop = async () => {
    listener.close();
    await grpc.stop(1_000);
  };
  const address = socketFile ?? `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  return { address, stop, [Symbol.asyncDispose]: stop };
}
