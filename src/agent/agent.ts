/**
 * One proxy and what serves it:
 *
 *   DNS 15053 <--names-- xDS proxy (socket XDS) <--> control plane 15012
 *   SDS (socket) <--certificate-- workload identity <--> CA 15012
 *   status 15020 --> Envoy's admin port, the application
 *   Envoy, which uses all of them and decides how long they live
 */
import { errorText } from "#lib/mesh-error.ts";
import type { AgentContext, AgentInput } from "./agent-context.ts";
import { addressFamily } from "./bootstrap/addresses.ts";
import { DEBUG_SOCKET } from "./debug-socket/path.ts";
import { envoyAdmin } from "./envoy/admin.ts";
import { failingAs, STARTING } from "./failing-as.ts";
import { agentMetrics } from "./metrics.ts";
import { openSockets } from "./open-sockets.ts";
import { pathIn } from "./place.ts";
import { planDns } from "./plan-dns.ts";
import { planIdentity } from "./plan-identity.ts";
import { planStatus } from "./plan-status.ts";
import { prepare } from "./prepare.ts";
import { startProxy } from "./run-proxy.ts";
import type { TokenStatus } from "./sts/google-exchange.ts";
import { checkCredentialFetcher } from "./sts/token-source.ts";
import { controlPlaneServer } from "./trust.ts";

/** Runs until Envoy is gone, and gives the status to exit with. Rejects when something cannot be started. */
export async function runAgent(input: AgentInput): Promise<number> {
  const prepared = await prepare(input);
  const finished = new AbortController();
  const quit = new AbortController();
  const drained = new AbortController();
  const ended = new AbortController();
  // Where the bootstrap has Envoy listen.
  const { localhost } = addressFamily(prepared.addresses, input.config.envoy.dualStack);
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
    checkCredentialFetcher(context.config.identity);
    const statusPlan = planStatus(context);
    const tokens = context.flags.stsPort > 0 ? await (await import("./sts/start-sts.ts")).startSts(context) : undefined;
    if (context.flags.profiling) await startDebugSocket(context, tokens);
    const identityPlan = await failingAs(STARTING.identity, () => planIdentity(context));
    const upstream = await failingAs("failed to find root XDS CA", () => controlPlaneServer(context));
    const dnsPlan = await failingAs(STARTING.dns, () => planDns(context));
    const sockets = await openSockets(context);
    const proxy = await failingAs("failed to initialize envoy agent", () => startProxy(context));
    try {
      // Envoy takes longest to start: what serves it is loaded and started meanwhile. It is the larger part of the agent.
      const { serveEnvoy } = await import("./serve-envoy.ts");
      const ends = {
        quit: () => quit.abort(),
        drain: () => drainNow(context, drained),
        end: () => ended.abort(),
      };
      await serveEnvoy(context, { sockets, identityPlan, dnsPlan, statusPlan, upstream, ends }, running);
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

/** Without it the proxy works as well. One agent of several workloads has one debug socket, which `serve` opens. */
async function startDebugSocket({ place, log, done }: AgentContext, tokens?: () => readonly TokenStatus[]) {
  if (place.connect !== undefined) return;
  const { serveDebugSocket } = await import("./debug-socket/serve.ts");
  await serveDebugSocket({ path: pathIn(place, DEBUG_SOCKET), tokens, log }, done).catch((thrown: unknown) =>
    log.error(`Profiles are not served: ${errorText(thrown)}`),
  );
}

/** `/drain`, by which Kubernetes announces the end of a native sidecar long before it comes. */
function drainNow({ admin, flags, log }: AgentContext, drained: AbortController): void {
  log.info("Agent draining proxy");
  admin
    .drainListeners({ inboundOnly: flags.type === "sidecar", skipExit: true })
    .catch((thrown: unknown) => log.warn(`Envoy cannot be told to drain: ${errorText(thrown)}`))
    .finally(() => drained.abort());
}
