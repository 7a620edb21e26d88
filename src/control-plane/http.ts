/** The HTTP listeners: 8080 for people and probes, 15014 for Prometheus. */
import type { FastifyInstance } from "fastify";
import type { Readiness } from "#debug/readiness.ts";
import { addDebugRoutes, addMetricsRoute, addReadyRoute, addVersionRoute, type DebugOptions } from "#debug/routes.ts";
import { VERSION_TEXT } from "#lib/command/version-command.ts";
import { HttpListener } from "#lib/net/http-listener.ts";
import type { Admissions } from "./metrics/admissions.ts";
import type { ControlPlaneMetrics } from "./metrics/metrics.ts";
import type { DiscoveryConfig } from "./settings/config.ts";

export interface HttpInput {
  readonly config: DiscoveryConfig;
  readonly readiness: Readiness;
  readonly metrics: ControlPlaneMetrics;
  readonly debug: DebugOptions;
  readonly admissions: Admissions;
}

export interface NamedListener {
  readonly what: string;
  readonly listener: HttpListener;
}

/** Without an address for metrics they are served with the rest, as by istiod. */
export function httpListeners({ config, readiness, metrics, debug, admissions }: HttpInput): readonly NamedListener[] {
  const { http, monitoring } = config.listen;
  const addMetrics = (app: FastifyInstance) => addMetricsRoute(app, metrics, config.localMetrics === true);
  const common = (app: FastifyInstance) => {
    addVersionRoute(app, VERSION_TEXT);
    if (config.debugOnHttp) addDebugRoutes(app, debug);
  };
  const onHttp = (app: FastifyInstance) => {
    common(app);
    addReadyRoute(app, readiness);
    if (monitoring === undefined) addMetrics(app);
  };
  const onMonitoring = (app: FastifyInstance) => {
    common(app);
    addMetrics(app);
  };
  const listeners: NamedListener[] = [];
  if (http !== undefined) {
    const listener = new HttpListener({
      flag: "--httpAddr",
      address: http,
      routes: onHttp,
      admission: admissions.of(http.port),
    });
    listeners.push({ what: "HTTP service", listener });
  }
  if (monitoring !== undefined) {
    const listener = new HttpListener({
      flag: "--monitoringAddr",
      address: monitoring,
      routes: onMonitoring,
      admission: admissions.of(monitoring.port),
    });
    listeners.push({ what: "monitoring service", listener });
  }
  return listeners;
}
