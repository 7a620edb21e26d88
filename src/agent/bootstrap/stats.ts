/** Which statistics Envoy keeps, how it turns their names into tags, and where it sends them. */
import { formatDuration, parseDuration } from "@mizzen/go-text/duration";
import { socketAddress } from "./clusters.ts";
import type { BootstrapContext, Json } from "./input.ts";

type Fields = { readonly [key: string]: Json };

const ANNOTATION = "sidecar.istio.io";
const DEFAULT_FLUSH_MS = 5_000;
/** What Envoy takes for intervals; it does not start with others. */
const SHORTEST_INTERVAL_MS = 1;
const FLUSHES_WITHIN_MS = 300_000;

/** Read by readiness probes and by tools. */
const NEEDED_PREFIXES = ["cluster_manager", "listener_manager", "server", "cluster.xds-grpc", "wasm"];
const NEEDED_SUFFIXES = ["rbac.allowed", "rbac.denied", "shadow_allowed", "shadow_denied"];
/** Read while draining until it is 0. */
const DRAINING_SUFFIX = "downstream_cx_active";
/** Statistics of routes of virtual services that set `statPrefix`. */
const NEEDED_REGEX = "vhost\\..*\\.route\\..*";

const FIRST_TAGS: readonly (readonly [name: string, regex: string])[] = [
  ["cluster_name", "^cluster(\\.(.+);)"],
  ["http_conn_manager_prefix", "^http\\.(((?:[_.[:digit:]\\w]*|[_\\[\\]aAbBcCdDeEfF[:digit:]\\w\\:]*));\\.)"],
  ["thread_name", "^server(\\.(.+))\\.watchdog"],
  ["tcp_prefix", "^tcp\\.((.*?)\\.)\\w+?$"],
  ["response_code", "_rq(_(\\d{3}))$"],
  ["response_code_class", "_rq(_(\\dxx))$"],
  [
    "http_conn_manager_listener_prefix",
    "^listener(?=\\.).*?\\.http\\.(((?:[_.[:digit:]]*|[_\\[\\]aAbBcCdDeEfF[:digit:]]*))\\.)",
  ],
  ["listener_address", "^listener\\.(((?:[_.[:digit:]]*|[_\\[\\]aAbBcCdDeEfF[:digit:]]*))\\.)"],
  ["mongo_prefix", "^mongo\\.(.+?)\\.(collection|cmd|cx_|op_|delays_|decoding_)(.*?)$"],
];
const LAST_TAGS: readonly (readonly [name: string, regex: string])[] = [
  ["cache", "(cache\\.(.+?)\\.)"],
  ["component", "(component\\.(.+?)\\.)"],
  ["tag", "(tag\\.(.+?);\\.)"],
  ["wasm_filter", "(wasm_filter\\.(.+?)\\.)"],
  ["authz_enforce_result", "rbac(\\.(allowed|denied))"],
  ["authz_dry_run_action", "(\\.istio_dry_run_(allow|deny)_)"],
  ["authz_dry_run_result", "(\\.shadow_(allowed|denied))"],
];

/** What annotations and configuration ask for, with what is always needed. */
export interface StatsOptions {
  readonly prefixes: readonly string[];
  readonly suffixes: readonly string[];
  readonly regexps: readonly string[];
  readonly extraTags: readonly string[];
  readonly buckets: readonly HistogramBuckets[];
  /** As Envoy reads durations. */
  readonly flushInterval: string | undefined;
  readonly evictionInterval: string | undefined;
}

interface HistogramBuckets {
  readonly match: { readonly prefix: string };
  readonly buckets: readonly number[];
}

/** Reads them; what cannot be read is told and left out. */
export function statsOptions(context: BootstrapContext, problems: string[]): StatsOptions {
  const { proxyConfig, node, exitOnZeroActiveConnections, addresses } = context;
  const { inclusionPrefixes, inclusionSuffixes, inclusionRegexps } = proxyConfig.proxyStatsMatcher ?? {};
  // An annotation stands in place of the configuration, not beside it.
  const wanted = (name: string, configured: readonly string[] = []) => {
    const annotated = commaList(node.annotations[`${ANNOTATION}/${name}`]);
    return annotated.length === 0 ? configured : annotated;
  };
  const suffixes = exitOnZeroActiveConnections ? [...NEEDED_SUFFIXES, DRAINING_SUFFIX] : NEEDED_SUFFIXES;
  const annotatedTags = commaList(node.annotations[`${ANNOTATION}/extraStatTags`]);
  return {
    prefixes: withAddresses([...wanted("statsInclusionPrefixes", inclusionPrefixes), ...NEEDED_PREFIXES], addresses),
    suffixes: withAddresses([...wanted("statsInclusionSuffixes", inclusionSuffixes), ...suffixes], addresses),
    regexps: withAddresses([...wanted("statsInclusionRegexps", inclusionRegexps), NEEDED_REGEX], addresses),
    extraTags: [...new Set([...(proxyConfig.extraStatTags ?? []), ...annotatedTags].filter((tag) => tag !== ""))],
    buckets: histogramBuckets(node.annotations[`${ANNOTATION}/statsHistogramBuckets`], problems),
    ...intervals(context, problems),
  };
}

/** `stats_config` and the intervals beside it. */
export function stats(context: BootstrapContext, problems: string[]): Fields {
  const options = statsOptions(context, problems);
  const { flushInterval, evictionInterval, buckets } = options;
  return {
    ...(flushInterval === undefined ? {} : { stats_flush_interval: flushInterval }),
    ...(evictionInterval === undefined ? {} : { stats_eviction_interval: evictionInterval }),
    stats_config: {
      use_all_default_tags: false,
      stats_tags: tags(options.extraTags),
      ...(buckets.length === 0 ? {} : { histogram_bucket_settings: buckets.map((one) => ({ ...one })) }),
      stats_matcher: { inclusion_list: { patterns: patterns(context, options) } },
    },
  };
}

/** Where statistics are sent, if anywhere. */
export function statsSinks({ proxyConfig, hostIp }: BootstrapContext): Fields {
  const { envoyMetricsService, statsdUdpAddress } = proxyConfig;
  const sinks: Json[] = [];
  if (envoyMetricsService?.address !== undefined) {
    sinks.push({
      name: "envoy.stat_sinks.metrics_service",
      typed_config: {
        "@type": "type.googleapis.com/envoy.config.metrics.v3.MetricsServiceConfig",
        transport_api_version: "V3",
        grpc_service: { envoy_grpc: { cluster_name: "envoy_metrics_service" } },
      },
    });
  }
  if (statsdUdpAddress !== undefined) {
    sinks.push({
      name: "envoy.stat_sinks.statsd",
      typed_config: {
        "@type": "type.googleapis.com/envoy.config.metrics.v3.StatsdSink",
        address: { socket_address: socketAddress(statsdUdpAddress, hostIp) },
      },
    });
  }
  return sinks.length === 0 ? {} : { stats_sinks: sinks };
}

/** True when the proxy learns its peers' metadata from the control plane, which only Istio's Envoy can. */
export function discoversMetadata({ node, deltaXds }: BootstrapContext): boolean {
  return deltaXds && node.metadata.METADATA_DISCOVERY === "true";
}

function tags(extraTags: readonly string[]): Json {
  const extra = extraTags.map((tag) => [tag, `(${tag}=\\.=(.*?);\\.;)`] as const);
  return [...FIRST_TAGS, ...extra, ...LAST_TAGS].map(([tag_name, regex]) => ({ tag_name, regex }));
}

function patterns(context: BootstrapContext, { prefixes, suffixes, regexps }: StatsOptions): Json {
  return [
    { prefix: "reporter=" },
    ...(discoversMetadata(context) ? [{ prefix: "workload_discovery" }] : []),
    ...prefixes.map((prefix) => ({ prefix })),
    ...suffixes.map((suffix) => ({ suffix })),
    ...regexps.map((regex) => ({ safe_regex: { regex } })),
    { prefix: "component" },
    { prefix: "istio" },
  ];
}

/** `http.{pod_ip}_` stands for one pattern per address of the instance. */
function withAddresses(names: readonly string[], addresses: readonly string[]): string[] {
  return names.flatMap((name) =>
    name.includes("{pod_ip}") ? [...new Set(addresses)].map((address) => name.replaceAll("{pod_ip}", address)) : [name],
  );
}

function intervals(
  { node }: BootstrapContext,
  problems: string[],
): Pick<StatsOptions, "flushInterval" | "evictionInterval"> {
  const flush = annotatedInterval(
    node.annotations,
    { name: "statsFlushInterval", belowMs: FLUSHES_WITHIN_MS },
    problems,
  );
  const eviction = annotatedInterval(node.annotations, { name: "statsEvictionInterval" }, problems);
  const evicts = eviction !== undefined && eviction % (flush ?? DEFAULT_FLUSH_MS) === 0;
  if (eviction !== undefined && !evicts) {
    problems.push(
      `annotation ${ANNOTATION}/statsEvictionInterval must be a multiple of ${formatDuration(flush ?? DEFAULT_FLUSH_MS)}`,
    );
  }
  return {
    flushInterval: flush === undefined ? undefined : protobufSeconds(flush),
    evictionInterval: evicts ? protobufSeconds(eviction) : undefined,
  };
}

function annotatedInterval(
  annotations: Readonly<Record<string, string>>,
  { name, belowMs = Number.POSITIVE_INFINITY }: { readonly name: string; readonly belowMs?: number },
  problems: string[],
): number | undefined {
  const text = annotations[`${ANNOTATION}/${name}`];
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= SHORTEST_INTERVAL_MS && ms < belowMs) return ms;
  const most = belowMs === Number.POSITIVE_INFINITY ? "" : ` and below ${formatDuration(belowMs)}`;
  const range = `of at least ${formatDuration(SHORTEST_INTERVAL_MS)}${most}`;
  problems.push(`annotation ${ANNOTATION}/${name} must be a duration ${range}, not "${text}"`);
  return undefined;
}

function histogramBuckets(text: string | undefined, problems: string[]): readonly HistogramBuckets[] {
  if (text === undefined) return [];
  const byPrefix = parsedBuckets(text);
  if (byPrefix === undefined) {
    problems.push(
      `annotation ${ANNOTATION}/statsHistogramBuckets must be a JSON object of lists of different numbers above 0, not ${text}`,
    );
    return [];
  }
  return Object.keys(byPrefix)
    .sort()
    .map((prefix) => ({ match: { prefix }, buckets: byPrefix[prefix] ?? [] }));
}

function parsedBuckets(text: string): Readonly<Record<string, readonly number[] | null>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject && !("" in value) && Object.values(value).every(isBuckets) ? { ...value } : undefined;
  } catch {
    return undefined; // told by the caller, as is JSON of another kind
  }
}

/** True for limits of buckets with which Envoy starts; null is none. */
function isBuckets(list: unknown): boolean {
  const isLimit = (item: unknown) => typeof item === "number" && item > 0 && Number.isFinite(item);
  if (list === null) return true;
  return Array.isArray(list) && list.every(isLimit) && new Set(list).size === list.length;
}

/** Without the empty name of a comma too many, with which Envoy does not start. */
function commaList(text: string | undefined): string[] {
  return (text ?? "").split(",").filter((name) => name !== "");
}

/** Envoy's JSON reader takes seconds with a unit, never `1m0s`. */
function protobufSeconds(ms: number): string {
  return `${ms / 1000}s`;
}
