import type { Server } from "node:net";
import { formatDuration } from "@mizzen/go-text/duration";
import { durationMs } from "#config/proxy-config/proxy-config.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { AgentContext } from "./agent-context.ts";
import { nameTableJson } from "./dns/name-table-json.ts";
import type { MeshResolver } from "./dns/resolver.ts";
import { type Place, pathIn } from "./place.ts";
import type { StatusPlan } from "./plan-status.ts";
import type { WorkloadIdentity } from "./sds/workload-identity.ts";
import { endersOf } from "./status/enders.ts";
import { EnvoyReadiness } from "./status/envoy-readiness.ts";
import { grpcBootstrapProblem } from "./status/grpc-readiness.ts";
import { connectToApplication } from "./status/probes/connect.ts";
import { KeptConnections } from "./status/probes/kept-connections.ts";
import type { ProbeTarget } from "./status/probes/run.ts";
import { type Need, type Waiting, waitingFor } from "./status/readiness.ts";
import { type StatusOptions, startStatusServer } from "./status/server.ts";

/** What ends an agent, or its Envoy's part in the traffic. */
export interface Ends {
  /** At once. */
  readonly quit: () => void;
  readonly drain: () => void;
  /** Ends the agent with draining. */
  readonly end: () => void;
}

export interface StatusParts extends Ends {
  /** Undefined without a status port. */
  readonly plan: StatusPlan | undefined;
  /** Undefined when the certificate is another's business. */
  readonly identity: WorkloadIdentity | undefined;
  /** Undefined without DNS. */
  readonly resolver: MeshResolver | undefined;
}

/**
 * Opens the status port, if there is one. A port that is taken does not keep the proxy from starting: whoever probes it
 * finds out.
 */
export async function startStatus(context: AgentContext, parts: StatusParts): Promise<void> {
  const { log, done, place } = context;
  const { plan } = parts;
  if (plan === undefined) return;
  const options = statusOptions(context, parts, plan);
  const where = statusSocket(place, plan.port);
  try {
    const server = await startStatusServer(where, options);
    done.addEventListener("abort", () => server.close(), { once: true });
    // Nobody waits for this answer. It is the first that takes long, since nothing that gives it has run before.
    void options.waiting();
  } catch (thrown) {
    log.error(`Error listening on status port: ${errorText(thrown)}`);
  }
}

/** The socket that was opened for the status port, or the port. Throws when it was opened on another: Envoy would not find it. */
export function statusSocket({ sockets }: Pick<Place, "sockets">, statusPort: number): Server | number {
  const opened = sockets?.status;
  if (opened === undefined) return statusPort;
  const address = opened.address();
  const port = typeof address === "object" ? address?.port : undefined;
  if (port === statusPort) return opened;
  throw new MeshError(
    "WORKLOAD_FILE_INVALID",
    `statusPort must be that of the ProxyConfig, ${statusPort}, but port ${port} was opened`,
  );
}

function statusOptions(context: AgentContext, parts: StatusParts, plan: StatusPlan): StatusOptions {
  const { config, log, metrics, localhost, place } = context;
  return {
    waiting: readiness(context, parts),
    probes: plan.probes,
    probeTarget: probeTarget(context, plan.port),
    scrape: {
      envoyPrometheusPort: config.envoy.disabled ? undefined : config.envoy.prometheusPort,
      application: plan.application,
      localhost,
      connect: place.connect,
      metrics,
      log,
    },
    metricsOnLoopbackOnly: config.status.metricsOnLoopbackOnly,
    enders: endersOf(context),
    nameTable: () => parts.resolver?.nameTable && nameTableJson(parts.resolver.nameTable, parts.resolver.scope),
    quit: parts.quit,
    drain: parts.drain,
    failed: parts.end,
    log,
  };
}

function probeTarget({ config, localhost, place, done }: AgentContext, statusPort: number): ProbeTarget {
  const { legacyLocalhostProbes, http2Probes, keptProbeConnections } = config.status;
  const host = legacyLocalhostProbes || config.instanceIp === "" ? localhost : config.instanceIp;
  const connect = place.connect ?? connectToApplication(localhost);
  const kept = keptProbeConnections ? new KeptConnections(connect) : undefined;
  done.addEventListener("abort", () => kept?.close(), { once: true });
  return { host, statusPort, connect, http2: http2Probes, kept };
}

/**
 * Ready is a proxy that has its configuration and its names, and is not about to end. Its certificate is named where it is
 * missed, and not asked for by itself: Envoy waits for the certificates that its listeners use, and a gateway may use none.
 */
function readiness(context: AgentContext, { resolver, identity }: StatusParts): () => Promise<readonly Waiting[]> {
  const { admin, config, stop, metrics, log, startedAt, place } = context;
  const envoy = new EnvoyReadiness(admin);
  const needs: readonly Need[] = [
    { name: "Envoy's configuration", problem: () => (config.envoy.disabled ? undefined : envoy.problem()) },
    {
      name: "gRPC bootstrap",
      problem: () =>
        config.grpcBootstrapPath === ""
          ? undefined
          : grpcBootstrapProblem(config.grpcBootstrapPath, (path) => pathIn(place, path)),
    },
    { name: "DNS names", problem: () => (resolver?.ready === false ? NO_NAMES : undefined) },
  ];
  const certificate: Need = {
    name: "workload certificate",
    problem: () => (identity !== undefined && identity.current === undefined ? NO_CERTIFICATE : undefined),
  };
  return async () => {
    if (stop.aborted) return [ending(context)];
    const waiting = await waitingFor(needs);
    if (waiting.length > 0) return [...waiting, ...(await waitingFor([certificate]))];
    if (metrics.startupSeconds === undefined) {
      const took = Date.now() - startedAt;
      metrics.startupSeconds = took / 1000;
      log.info(`Readiness succeeded in ${formatDuration(took)}`);
    }
    return [];
  };
}

function ending({ config, proxyConfig, hurry }: AgentContext): Waiting {
  const name = "the end of the agent";
  const { disabled, exitOnZeroActiveConnections } = config.envoy;
  if (disabled || hurry.aborted) return { name, reason: "server is terminated: it ends at once" };
  const how = exitOnZeroActiveConnections
    ? "until nobody is connected to it"
    : `for ${formatDuration(durationMs(proxyConfig.terminationDrainDuration))}`;
  return { name, reason: `server is terminated: Envoy drains ${how}` };
}

const NO_NAMES = "istio DNS capture is turned ON and DNS lookup table is not ready yet";
const NO_CERTIFICATE = "the workload has no certificate yet";
