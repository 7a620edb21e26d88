/**
 * Metrics of the agent, of Envoy and of the application as one text. Parts are joined, not parsed, and flow through: a
 * scrape of any size needs the memory of a few packets.
 *
 *   agent (text) -> Envoy (stream, names as Istio's) -> application (stream, last: its text may end with `# EOF`)
 *
 * A source that fails, hangs or does not end is cut off after its last whole line; the others are given all the same.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Writable } from "node:stream";
import { LONGEST_TIMER_MS } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { formatRequest, type HttpRequest } from "../http-client.ts";
import type { AgentMetrics } from "../metrics.ts";
import type { Connect } from "../place.ts";
import { istioNames, LineCutter } from "./exposition-lines.ts";
import type { ScrapeTarget } from "./scrape-target.ts";
import { openAnswer, type StreamedAnswer } from "./streamed-answer.ts";
import { unpacked } from "./unpacked-answer.ts";

export interface ScrapeOptions {
  /** Undefined without Envoy. */
  readonly envoyPrometheusPort: number | undefined;
  readonly application: ScrapeTarget | undefined;
  readonly localhost: string;
  readonly connect: Connect | undefined;
  readonly metrics: AgentMetrics;
  readonly log: Logger;
}

/** What a scraper sent. */
export interface ScrapeRequest {
  readonly headers: IncomingHttpHeaders;
  /** With its `?`; Envoy understands it. */
  readonly query: string;
  /** Aborted when the scraper is gone. */
  readonly signal: AbortSignal;
}

export interface MergedMetrics {
  readonly contentType: string;
  /** Writes them. Resolves when all is written that could be had. */
  pour(sink: Writable): Promise<void>;
}

type SourceName = "envoy" | "application";

interface Source {
  readonly name: SourceName;
  readonly answer: StreamedAnswer;
  readonly where: string;
  /** Time without a byte after which nothing more is expected. */
  readonly silenceMs: number;
}

const TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS_TYPE = "application/openmetrics-text";
const OPEN_METRICS_END = "# EOF\n";
/** A scraper that does not say how long it waits may wait long; when it leaves, that is noticed. Only nothing may hang for ever. */
const UNTOLD_PATIENCE_MS = 600_000;
const PATIENCE_HEADER = "x-prometheus-scrape-timeout-seconds";
/**
 * Parts of the scraper's patience. Nothing is given before both have begun to answer, since the format is the application's:
 * then Envoy's metrics need some of what is left, and the application must have the rest when Envoy used up its own.
 */
const BEGIN_SHARE = 0.75;
const ENVOY_SHARE = 0.85;
const TOTAL_SHARE = 0.95;
/** In the middle. Nobody waits for the application, which comes last. */
const SILENCE_SHARE: Readonly<Record<SourceName, number>> = { envoy: 0.3, application: TOTAL_SHARE };
const MAX_REDIRECTS = 10;

/** Scrapes all of them. What cannot be had is left out and logged: half the metrics are better than none. */
export async function mergedMetrics(options: ScrapeOptions, request: ScrapeRequest): Promise<MergedMetrics> {
  const { application, envoyPrometheusPort, metrics, localhost: host, connect } = options;
  metrics.scrapes.add();
  const patienceMs = scraperPatienceMs(request.headers, options.log);
  const target = { host, headers: passedHeaders(request.headers), connect, signal: request.signal };
  const opened = (name: SourceName, where: ScrapeTarget | undefined, share: number) =>
    where && open(name, { ...target, ...where, timeoutMs: share * patienceMs }, { ...options, patienceMs });
  const envoyTarget = envoyPrometheusPort && {
    port: envoyPrometheusPort,
    path: `/stats/prometheus${request.query}`,
    https: false,
  };
  const [envoy, app] = await Promise.all([
    opened("envoy", envoyTarget || undefined, ENVOY_SHARE),
    opened("application", application, TOTAL_SHARE),
  ]);
  const contentType = negotiateFormat(app?.answer.headers["content-type"] ?? "");
  const sources = { envoy, app, openMetrics: contentType !== TEXT_FORMAT };
  return { contentType, pour: (sink) => pourMerged(sink, sources, options) };
}

/** The format is the application's, since ours are the same in all of them. */
export function negotiateFormat(contentType: string): string {
  const [type = "", ...parameters] = contentType.split(";").map((part) => part.trim());
  if (type.toLowerCase() !== OPEN_METRICS_TYPE) return TEXT_FORMAT;
  const version = parameters.map((parameter) => /^version="?([^"]*)"?$/i.exec(parameter)?.[1]).find((found) => found);
  return ["0.0.1", "1.0.0", undefined].includes(version)
    ? `${OPEN_METRICS_TYPE}; version=${version ?? "0.0.1"}; charset=utf-8`
    : TEXT_FORMAT;
}

function scraperPatienceMs(headers: IncomingHttpHeaders, log: Logger): number {
  const given = headers[PATIENCE_HEADER];
  if (given === undefined) return UNTOLD_PATIENCE_MS;
  const seconds = Number(given);
  if (seconds > 0 && Number.isFinite(seconds)) return Math.min(seconds * 1000, LONGEST_TIMER_MS);
  log.warn(`Failed to parse timeout header ${given}: it must be a number of seconds`);
  return UNTOLD_PATIENCE_MS;
}

/** Protobuf is not asked for, though scrapers prefer it: it could not be joined with text. */
function passedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const accept = headers.accept
    ?.split(",")
    .filter((format) => !format.includes("protobuf"))
    .join(",");
  const passed = { accept, "user-agent": headers["user-agent"], [PATIENCE_HEADER]: headers[PATIENCE_HEADER] };
  return Object.fromEntries(
    Object.entries(passed).flatMap(([name, value]) =>
      value === undefined || value === "" ? [] : [[name, String(value)]],
    ),
  );
}

async function open(
  name: SourceName,
  request: HttpRequest,
  options: ScrapeOptions & { readonly patienceMs: number },
): Promise<Source | undefined> {
  const { patienceMs } = options;
  const silenceMs = SILENCE_SHARE[name] * patienceMs;
  try {
    const answer = await openSpeakingSoon(request, BEGIN_SHARE * patienceMs);
    return { name, silenceMs, where: formatRequest(request), answer };
  } catch (thrown) {
    options.metrics.failedScrapes[name].add();
    options.log.error(`failed scraping ${name} metrics: ${errorText(thrown)}`);
    return undefined;
  }
}

/** The answer of a source that begins to speak before the others would wait too long for it. */
async function openSpeakingSoon(request: HttpRequest, beginMs: number): Promise<StreamedAnswer> {
  const silent = new AbortController();
  const timer = setTimeout(() => {
    silent.abort(new MeshError("HTTP_FAILED", `${formatRequest(request)}: no answer in ${beginMs} ms`));
  }, beginMs);
  const signal = request.signal === undefined ? silent.signal : AbortSignal.any([silent.signal, request.signal]);
  try {
    return await follow({ ...request, signal }, MAX_REDIRECTS);
  } finally {
    clearTimeout(timer);
  }
}

async function follow(request: HttpRequest, redirects: number): Promise<StreamedAnswer> {
  const answer = await openLocal(request);
  const { status, headers } = answer;
  if (status === 200) return unpacked(answer);
  answer.destroy();
  const next = status >= 300 && status < 400 ? sameHost(headers.location, request) : undefined;
  if (next === undefined || redirects === 0)
    throw new MeshError("HTTP_FAILED", `${formatRequest(request)} answered ${status}`);
  return follow({ ...request, ...next }, redirects - 1);
}

/** Asked as `localhost`, which means both loopback addresses: an application may listen on one of them alone. */
async function openLocal(request: HttpRequest): Promise<StreamedAnswer> {
  const local = { ...request, headers: { ...request.headers, host: `localhost:${request.port}` } };
  try {
    return await openAnswer(local);
  } catch (refusal) {
    if (!isRefused(refusal)) throw refusal;
    return openAnswer({ ...local, host: request.host === "::1" ? "127.0.0.1" : "::1" }).catch(() => {
      throw refusal;
    });
  }
}

function isRefused(thrown: unknown): boolean {
  const cause = thrown instanceof MeshError ? thrown.cause : thrown;
  return cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED";
}

/** Where a redirect leads, unless it leads elsewhere. */
function sameHost(
  location: string | undefined,
  { host, port, path, https }: HttpRequest,
): Partial<HttpRequest> | undefined {
  const base = `${https ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}${path}`;
  if (location === undefined || !URL.canParse(location, base)) return undefined;
  const url = new URL(location, base);
  if (![new URL(base).hostname, "localhost"].includes(url.hostname)) return undefined;
  const secure = url.protocol === "https:";
  return { port: Number(url.port) || (secure ? 443 : 80), path: url.pathname + url.search, https: secure };
}

interface Sources {
  readonly envoy: Source | undefined;
  readonly app: Source | undefined;
  readonly openMetrics: boolean;
}

async function pourMerged(sink: Writable, sources: Sources, options: ScrapeOptions): Promise<void> {
  const { envoy, app, openMetrics } = sources;
  try {
    sink.write(options.metrics.text());
    if (envoy !== undefined) await pourLines(sink, envoy, options);
    const complete = app !== undefined && (await pourLines(sink, app, options));
    // Without its end a scraper takes the whole for broken, and Envoy's metrics with it.
    if (openMetrics && !complete) sink.write(OPEN_METRICS_END);
  } finally {
    envoy?.answer.destroy();
    app?.answer.destroy();
  }
}

/** Writes all lines of a source, until it ends or breaks; tells which. */
async function pourLines(sink: Writable, source: Source, { metrics, log }: ScrapeOptions): Promise<boolean> {
  const { name, answer } = source;
  const silence = watchSilence(source);
  const cutter = new LineCutter();
  const named = name === "envoy" ? istioNames : (lines: Buffer) => lines;
  try {
    await answer.read((parts) => {
      const lines = parts.flatMap((part) => cutter.cut(part));
      const written = writeAll(sink, lines.map(named));
      silence.heard();
      if (written === undefined) return undefined;
      silence.pause();
      return written.then(silence.heard);
    });
    await writeAll(sink, cutter.end().map(named));
    return true;
  } catch (thrown) {
    metrics.failedScrapes[name].add();
    log.error(`metrics of ${name} ended early: ${errorText(thrown)}`);
    return false;
  } finally {
    silence.end();
  }
}

/** Writes in one go; undefined when nothing of it is waiting any more, else resolves when that is so. */
function writeAll(sink: Writable, pieces: readonly Buffer[]): Promise<void> | undefined {
  const [last, ...before] = pieces.toReversed();
  if (last === undefined) return undefined;
  const written = Promise.withResolvers<void>();
  sink.cork();
  for (const piece of before.reverse()) sink.write(piece);
  sink.write(last, () => written.resolve());
  sink.uncork();
  return sink.writableLength === 0 ? undefined : written.promise;
}

/** Breaks off a source that is silent for too long. Time in which it may not speak does not count. */
function watchSilence({ answer, where, silenceMs }: Source): { heard(): void; pause(): void; end(): void } {
  let paused = false;
  const timer = setTimeout(() => {
    if (!paused) answer.destroy(new MeshError("HTTP_FAILED", `${where}: nothing more in ${silenceMs} ms`));
  }, silenceMs);
  return {
    heard: () => {
      paused = false;
      timer.refresh();
    },
    pause: () => {
      paused = true;
    },
    end: () => clearTimeout(timer),
  };
}
