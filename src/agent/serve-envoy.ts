/** All that serves an Envoy, started while it starts. */
import type { AgentContext } from "./agent-context.ts";
import { grpcBootstrap } from "./bootstrap/grpc-bootstrap.ts";
import { writeReadably } from "./bootstrap/write.ts";
import type { ControlPlaneServer } from "./control-plane.ts";
import { failingAs, STARTING } from "./failing-as.ts";
import type { EnvoySockets } from "./open-sockets.ts";
import { pathIn } from "./place.ts";
import type { DnsPlan } from "./plan-dns.ts";
import type { IdentityPlan } from "./plan-identity.ts";
import type { StatusPlan } from "./plan-status.ts";
import { startDns } from "./start-dns.ts";
import { startIdentity } from "./start-identity.ts";
import { type Ends, startStatus } from "./start-status.ts";
import { xdsSocketPath } from "./xds-proxy/xds-config.ts";

export interface ServeParts {
  readonly sockets: EnvoySockets;
  readonly identityPlan: IdentityPlan;
  /** Undefined without DNS. */
  readonly dnsPlan: DnsPlan | undefined;
  readonly statusPlan: StatusPlan | undefined;
  readonly upstream: ControlPlaneServer;
  readonly ends: Ends;
}

export async function serveEnvoy(
  context: AgentContext,
  { sockets, identityPlan, dnsPlan, statusPlan, upstream, ends }: ServeParts,
  running: Promise<void>[],
): Promise<void> {
  const identity = await failingAs(STARTING.identity, () => startIdentity(context, identityPlan, running));
  const resolver = await failingAs(STARTING.dns, () => startDns(context, dnsPlan, running));
  await failingAs("failed generating gRPC XDS bootstrap", () => writeGrpcBootstrap(context));
  const { serveSockets } = await import("./serve-sockets.ts");
  const { fetchToken } = identity;
  await failingAs(STARTING.xds, () =>
    serveSockets(context, { ...identity, resolver, upstream: { ...upstream, fetchToken }, sockets }, running),
  );
  await startStatus(context, { ...ends, plan: statusPlan, identity: identity.identity, resolver });
  // Another thread makes its key. On two cores it would hold up Envoy and all of the above, and be there no sooner.
  if (identity.identity !== undefined) running.push(identity.identity.run(context.done));
}

async function writeGrpcBootstrap({ config, proxyConfig, node, place }: AgentContext): Promise<void> {
  const { grpcBootstrapPath, identity } = config;
  if (grpcBootstrapPath === "") return;
  const bootstrap = grpcBootstrap({
    node,
    xdsSocketPath: xdsSocketPath(proxyConfig),
    certificateFolder: identity.outputFolder,
  });
  await writeReadably(pathIn(place, grpcBootstrapPath), JSON.stringify(bootstrap, null, 2));
}
