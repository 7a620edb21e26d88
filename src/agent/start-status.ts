import { isIPv6 } from "node:net";
import { formatDuration } from "#lib/duration.ts";
import type { AgentContext } from "./agent-context.ts";
import { nameTableJson } from "./dns/name-table-json.ts";
import type { MeshResolver } from "./dns/resolver.ts";
import type { WorkloadIdentity } from "./sds/workload-identity.ts";
import { EnvoyReadiness } from "./status/envoy-readiness.ts";
import { parseAppProbes } from "./status/probes/parse.ts";
import { parseScrapeTarget } from "./status/scrape.ts";
import { startStatusServer } from "./status/server.ts";

export interface StatusParts {
  /** Undefined when the certificate is another's business. */
  readonly identity: WorkloadIdentity | undefined;
  /** Undefined without DNS. */
  readonly resolver: MeshResolver | undefined;
  readonly quit: () => void;
  readonly drain: () => void;
}

/** Source addresses that the rules of traffic capture let pass to the application. */
const PROBE_SOURCE_V4 = "127.0.0.6";
const PROBE_SOURCE_V6 = "::6";

/** Opens the status port, if there is one. */
export async function startStatus(context: AgentContext, parts: StatusParts): Promise<void> {
  const { config, proxyConfig, flags, log, metrics, localhost, done } = context;
  const { statusPort = 0 } = proxyConfig;
  if (statusPort === 0) return;
  const { appProbers, prometheusAnnotations, legacyLocalhostProbes } = config.status;
  const host = legacyLocalhostProbes || config.instanceIp === "" ? localhost : config.instanceIp;
  const server = await startStatusServer(statusPort, {
    notReady: readiness(context, parts),
    probes: parseAppProbes(appProbers),
    probeTarget: { host, localAddress: isIPv6(host) ? PROBE_SOURCE_V6 : PROBE_SOURCE_V4, statusPort },
    scrape: {
      envoyPrometheusPort: config.envoy.prometheusPort,
      // 15020 of a gateway is reachable from outside, so only sidecars show metrics of applications there.
      application:
        flags.type === "sidecar" && prometheusAnnotations !== undefined
          ? parseScrapeTarget(prometheusAnnotations, statusPort)
          : undefined,
      localhost,
      metrics,
      log,
    },
    nameTable: () => parts.resolver?.nameTable && nameTableJson(parts.resolver.nameTable, parts.resolver.scope),
    quit: parts.quit,
    drain: parts.drain,
    log,
  });
  done.addEventListener("abort", () => server.close(), { once: true });
}

/** Ready is a proxy that has its configuration, its names and its certificate, and is not about to end. */
function readiness(
  { admin, stop, metrics, log }: AgentContext,
  { resolver, identity }: StatusParts,
): () => Promise<string | undefined> {
  const envoy = new EnvoyReadiness(admin);
  return async () => {
    if (stop.aborted) return "the agent is ending";
    const problem =
      (await envoy.problem()) ??
      (resolver?.ready === false
        ? "istio DNS capture is turned ON and DNS lookup table is not ready yet"
        : undefined) ??
      (identity !== undefined && identity.current === undefined ? "the workload has no certificate yet" : undefined);
    if (problem === undefined && metrics.startupSeconds === undefined) {
      metrics.startupSeconds = process.uptime();
      log.info(`Readiness succeeded in ${formatDuration(Math.round(process.uptime() * 1000))}`);
    }
    return problem;
  };
}
