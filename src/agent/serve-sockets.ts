/** Answers Envoy on its sockets. A file of its own because gRPC takes long to load. */
import { errorText } from "#lib/mesh-error.ts";
import type { AgentContext } from "./agent-context.ts";
import type { ControlPlaneOptions } from "./control-plane.ts";
import type { MeshResolver } from "./dns/resolver.ts";
import type { EnvoySockets } from "./open-sockets.ts";
import { secretDiscoveryService } from "./sds/service.ts";
import type { StartedIdentity } from "./start-identity.ts";
import { startXds } from "./start-xds.ts";
import { serveUnix } from "./unix-server.ts";

export interface SocketParts extends StartedIdentity {
  readonly sockets: EnvoySockets;
  /** Undefined without DNS. */
  readonly resolver: MeshResolver | undefined;
  readonly upstream: ControlPlaneOptions;
}

export async function serveSockets(context: AgentContext, parts: SocketParts, running: Promise<void>[]) {
  const { sockets, secrets } = parts;
  const { done: signal, config } = context;
  const failed = (error: Error) =>
    secrets.log.error(`SDS grpc server for workload proxies failed to start: ${errorText(error)}`);
  if (sockets.sds !== undefined)
    await serveUnix(sockets.sds, [secretDiscoveryService(secrets)], { signal, failed, ...config.xds.limits });
  await startXds(context, { ...parts, socket: sockets.xds }, running);
}
