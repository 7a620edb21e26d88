/**
 * One proxy and what serves it:
 *
 *   DNS 15053 <--names-- xDS proxy (socket XDS) <--> control plane 15012
 *   SDS (socket) <--certificate-- workload identity <--> CA 15012
 *   status 15020 --> Envoy's admin port, the application
 *   Envoy, which uses all of them and decides how long they live
 */
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { AgentContext, AgentInput } from "./agent-context.ts";
import { isIPv6Only } from "./bootstrap/addresses.ts";
import { grpcBootstrap } from "./bootstrap/grpc-bootstrap.ts";
import { writePrivately } from "./bootstrap/write.ts";
import { envoyAdmin } from "./envoy/admin.ts";
import { failingAs } from "./failing-as.ts";
import { agentMetrics } from "./metrics.ts";
import { openSockets } from "./open-sockets.ts";
import { pathIn } from "./place.ts";
import { prepare } from "./prepare.ts";
import { startProxy } from "./run-proxy.ts";
import { startDns } from "./start-dns.ts";
import { startIdentity } from "./start-identity.ts";
import { planStatus } from "./start-status.ts";
import { controlPlaneOptions } from "./trust.ts";
import { xdsSocketPath } from "./xds-proxy/xds-config.ts";

/** Runs until Envoy is gone, and gives the status to exit with. Rejects when something cannot be started. */
export async function runAgent(input: AgentInput): Promise<number> {
  const prepared = await prepare(input);
  const finished = new AbortController();
  const quit = new AbortController();
  const drained = new AbortController();
  const ended = new AbortController();
  const localhost = isIPv6Only(prepared.addresses) ? "::1" : "127.0.0.1";
  const context: AgentContext = {
    ...input,
    ...prepared,
    stop: AbortSignal.any([input.stop, quit.signal, ended.signal]),
    hurry: AbortSignal.any([input.hurry, quit.signal]),
    localhost,
    admin: envoyAdmin({ host: localhost, port: prepared.proxyConfig.proxyAdminPort, connect: input.place.connect }),
    metrics: agentMetrics(),
    done: finished.signal,
  };
  const running: Promise<void>[] = [];
  try {
    const identity = await failingAs("failed to start workload secret manager", () => startIdentity(context, running));
    if (context.flags.stsPort > 0) await (await import("./sts/start-sts.ts")).startSts(context);
    const resolver = await failingAs("failed to start local DNS server", () => startDns(context, running));
    const upstream = await failingAs("failed to find root XDS CA", () => controlPlaneOptions(context));
    const sockets = await openSockets(context);
    await failingAs("failed generating gRPC XDS bootstrap", () => writeGrpcBootstrap(context));
    const openStatus = planStatus(context, {
      identity: identity.identity,
      resolver,
      quit: () => quit.abort(),
      drain: () => drainNow(context, drained),
      end: () => ended.abort(),
    });
    const proxy = await failingAs("failed to initialize envoy agent", () => startProxy(context));
    try {
      // Envoy takes longest to start, so what it does not need at once is done meanwhile.
      await openStatus();
      const { serveEnvoy } = await import("./serve-envoy.ts");
      await failingAs("failed to start xds proxy", () =>
        serveEnvoy(context, { ...identity, resolver, upstream, sockets }, running),
      );
    } catch (thrown) {
      quit.abort();
      await proxy.run(drained.signal);
      throw thrown;
    }
    return await proxy.run(drained.signal);
  } finally {
    finished.abort();
    await Promise.all(running);
  }
}

async function writeGrpcBootstrap({ config, proxyConfig, node, place }: AgentContext): Promise<void> {
  const { grpcBootstrapPath, identity } = config;
  if (grpcBootstrapPath === "") return;
  const bootstrap = grpcBootstrap({
    node,
    xdsSocketPath: xdsSocketPath(proxyConfig),
    certificateFolder: identity.outputFolder,
  });
  const path = pathIn(place, grpcBootstrapPath);
  try {
    await writePrivately(path, JSON.stringify(bootstrap, null, 2));
  } catch (cause) {
    throw new MeshError("FILE_UNWRITABLE", `Cannot write ${path} (GRPC_XDS_BOOTSTRAP)`, { cause });
  }
}

/** `/drain`, by which Kubernetes announces the end of a native sidecar long before it comes. */
function drainNow({ admin, flags, log }: AgentContext, drained: AbortController): void {
  log.info("Agent draining proxy");
  admin
    .drainListeners({ inboundOnly: flags.type === "sidecar", skipExit: true })
    .catch((thrown: unknown) => log.warn(`Envoy cannot be told to drain: ${errorText(thrown)}`))
    .finally(() => drained.abort());
}
