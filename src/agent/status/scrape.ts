/** Metrics of the agent, of Envoy and of the application as one text. Parts are joined, not parsed. */
import type { IncomingMessage } from "node:http";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { type HttpRequest, send } from "../http-client.ts";
import type { AgentMetrics } from "../metrics.ts";

/** Where the application has its metrics. */
export interface ScrapeTarget {
  readonly port: number;
  readonly path: string;
}

export interface ScrapeOptions {
  readonly envoyPrometheusPort: number;
  readonly application: ScrapeTarget | undefined;
  readonly localhost: string;
  readonly metrics: AgentMetrics;
  readonly log: Logger;
}

export interface MergedMetrics {
  readonly contentType: string;
  readonly chunks: AsyncIterable<string>;
}

const TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS = /^application\/openmetrics-text\s*(?:;|$)/;
const TIMEOUT_MS = 10_000;
const PASSED_HEADERS = ["accept", "user-agent", "x-prometheus-scrape-timeout-seconds"];

/** Reads ISTIO_PROMETHEUS_ANNOTATIONS; undefined when the application is not to be scraped. Throws when it makes no sense. */
export function parseScrapeTarget(json: string, statusPort: number): ScrapeTarget | undefined {
  let given: { scrape?: unknown; path?: unknown; port?: unknown };
  try {
    given = Object(JSON.parse(json));
  } catch (cause) {
    throw new MeshError("PROMETHEUS_ANNOTATIONS_INVALID", `failed to unmarshal ISTIO_PROMETHEUS_ANNOTATIONS: ${json}`, {
      cause,
    });
  }
  if (given.scrape === "false") return undefined;
  const text = (value: unknown, fallback: string) => (value === undefined || value === "" ? fallback : String(value));
  const port = Number(text(given.port, "80"));
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new MeshError(
      "PROMETHEUS_ANNOTATIONS_INVALID",
      `prometheus.io/port must be a port from 1 to 65535, not "${given.port}"`,
    );
  }
  if (port === statusPort) {
    throw new MeshError(
      "PROMETHEUS_ANNOTATIONS_INVALID",
      `invalid prometheus scrape configuration: application port is the same as agent port ${statusPort}, which may lead to a recursive loop`,
    );
  }
  return { port, path: text(given.path, "/metrics") };
}

/** Scrapes all of them. What cannot be had is left out and logged: half the metrics are better than none. */
export async function mergedMetrics(
  options: ScrapeOptions,
  { headers, url = "" }: IncomingMessage,
): Promise<MergedMetrics> {
  const { application, envoyPrometheusPort, metrics, localhost: host } = options;
  metrics.scrapes.add();
  const query = url.includes("?") ? url.slice(url.indexOf("?")) : "";
  const passed = Object.fromEntries(
    PASSED_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  );
  const timeoutMs = 1000 * Number(headers["x-prometheus-scrape-timeout-seconds"]) || TIMEOUT_MS;
  const target = { host, headers: passed as Record<string, string>, timeoutMs };
  const [envoy, app] = await Promise.all([
    scrape({ ...target, port: envoyPrometheusPort, path: `/stats/prometheus${query}` }, "envoy", options),
    application && scrape({ ...target, ...application }, "application", options),
  ]);
  return { contentType: negotiateFormat(app?.headers["content-type"] ?? ""), chunks: merge(options, envoy, app) };
}

/** The format is the application's, since ours are the same in all of them. */
export function negotiateFormat(contentType: string): string {
  if (!OPEN_METRICS.test(contentType)) return TEXT_FORMAT;
  const version = /;\s*version=([\d.]+)/.exec(contentType)?.[1] ?? "0.0.1";
  return version === "0.0.1" || version === "1.0.0"
    ? `application/openmetrics-text; version=${version}; charset=utf-8`
    : TEXT_FORMAT;
}

async function scrape(
  request: HttpRequest,
  of: "envoy" | "application",
  options: ScrapeOptions,
): Promise<IncomingMessage | undefined> {
  try {
    const response = await send(request);
    if (response.statusCode === 200) return response.setEncoding("utf8");
    response.resume();
    throw new MeshError(
      "HTTP_FAILED",
      `http://${request.host}:${request.port}${request.path} answered ${response.statusCode}`,
    );
  } catch (thrown) {
    options.metrics.failedScrapes[of].add();
    options.log.error(`failed scraping ${of} metrics: ${errorText(thrown)}`);
    return undefined;
  }
}

/** The application comes last: its text may end with a mark that ends the whole. */
async function* merge(
  { metrics, log }: ScrapeOptions,
  envoy: IncomingMessage | undefined,
  app: IncomingMessage | undefined,
) {
  yield metrics.text();
  try {
    if (envoy !== undefined) yield* istioNames(envoy);
    if (app !== undefined) yield* app as AsyncIterable<string>;
  } catch (thrown) {
    log.error(`metrics ended early: ${errorText(thrown)}`);
  }
}

/**
 * Upstream Envoy puts `envoy_` before every name, Istio's does not do so with Istio's own: dashboards look for
 * `istio_requests_total`.
 */
export async function* istioNames(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let pending = "";
  for await (const chunk of chunks) {
    const text = pending + chunk;
    const end = text.lastIndexOf("\n") + 1;
    pending = text.slice(end);
    if (end > 0) yield renamed(text.slice(0, end));
  }
  if (pending !== "") yield renamed(pending);
}

function renamed(lines: string): string {
  return lines.replace(/^(# (?:TYPE|HELP) )?envoy_(?=istio_)/gm, "$1");
}
