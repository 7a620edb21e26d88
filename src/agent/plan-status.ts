import type { AgentContext } from "./agent-context.ts";
import { type AppProbe, parseAppProbes } from "./status/probes/parse.ts";
import { parseScrapeTarget, type ScrapeTarget } from "./status/scrape-target.ts";

/** What the status port serves for the application. */
export interface StatusPlan {
  readonly port: number;
  readonly probes: ReadonlyMap<string, AppProbe>;
  /** Undefined when the application is not scraped. */
  readonly application: ScrapeTarget | undefined;
}

type Context = Pick<AgentContext, "config" | "flags" | "log" | "proxyConfig">;

/** Undefined without a status port. Throws when probes or annotations make no sense: that is told before Envoy is started. */
export function planStatus(context: Context): StatusPlan | undefined {
  const { statusPort: port = 0 } = context.proxyConfig;
  if (port === 0) return undefined;
  // What is wrong is told in Istio's order.
  const application = applicationTarget(context, port);
  return { port, application, probes: parseAppProbes(context.config.status.appProbers) };
}

/** 15020 of a gateway is reachable from outside, so only sidecars show metrics of applications there. */
function applicationTarget({ config, flags, log }: Context, statusPort: number): ScrapeTarget | undefined {
  const { prometheusAnnotations } = config.status;
  if (flags.type !== "sidecar" || prometheusAnnotations === undefined) return undefined;
  log.info(`Prometheus scraping configuration: ${prometheusAnnotations}`);
  const { target, problem } = parseScrapeTarget(prometheusAnnotations, statusPort);
  if (problem !== undefined) log.warn(`Metrics of the application are not scraped: ${problem}`);
  return target;
}
