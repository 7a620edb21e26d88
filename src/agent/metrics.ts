/** The agent's own metrics under Istio's names, in Prometheus' text format. Small on purpose: it runs in every pod. */
import { Histogram } from "#lib/metrics/histogram.ts";
import { processMetrics } from "./process-metrics.ts";

export interface Counter {
  add(amount?: number): void;
}

/** Everything the agent counts. */
export interface AgentMetrics {
  readonly dnsRequests: Counter;
  readonly dnsUpstreamRequests: Counter;
  readonly dnsUpstreamFailures: Counter;
  readonly dnsUpstreamSeconds: Histogram;
  /** Forwarded questions by what the cache had for them. */
  readonly dnsCache: Record<"hit" | "miss" | "stale", Counter>;
  readonly xdsRequests: Counter;
  readonly xdsResponses: Counter;
  readonly istiodConnectionFailures: Counter;
  readonly istiodTerminations: Record<Termination, Counter>;
  readonly envoyTerminations: Record<Termination, Counter>;
  /** Bytes of the largest request of Envoy so far. */
  largestXdsRequest: number | undefined;
  /** Until a secret was handed over to Envoy's stream. */
  readonly secretSendSeconds: Histogram;
  readonly refusedSecrets: Counter;
  readonly signRequests: Counter;
  readonly failedSignRequests: Counter;
  readonly signRetries: Counter;
  readonly signMilliseconds: Counter;
  readonly failedFileWatches: Counter;
  readonly failedFileSecrets: Counter;
  readonly wasm: WasmMetrics;
  readonly scrapes: Counter;
  readonly failedScrapes: Record<"envoy" | "application", Counter>;
  /** Seconds until the workload's certificate expires. */
  certificateExpiry: () => number | undefined;
  /** Seconds from start to ready. */
  startupSeconds: number | undefined;
  /** All of them, as a scraper reads them. */
  text(): string;
}

/** Wasm modules that are fetched for Envoy. */
export interface WasmMetrics {
  /** How many are kept. */
  cacheEntries: () => number | undefined;
  readonly cacheLookups: Record<"true" | "false", Counter>;
  readonly fetches: Record<FetchResult, Counter>;
  readonly conversions: Record<ConversionResult, Counter>;
  readonly conversionMilliseconds: Histogram;
}

export type FetchResult = "success" | "fetch_failure" | "download_failure" | "manifest_failure" | "checksum_mismatched";
export type ConversionResult =
  | "success"
  | "no_remote_load"
  | "unmarshal_failure"
  | "fetch_failure"
  | "miss_remote_fetch_hint";

export type Termination = "cancelled" | "error";

type Labels = Readonly<Record<string, string>>;

const SEND_BUCKETS = [0.01, 0.1, 1, 3, 5, 10, 20, 30];
const UPSTREAM_DNS_BUCKETS = [0.001, 0.005, 0.01, 0.1, 1, 5];

export function agentMetrics(): AgentMetrics {
  const registry = new Registry();
  const { counter, gauge } = registry;
  const terminations = (name: string, help: string) => ({
    cancelled: counter(name, help, { type: "cancelled" }),
    error: counter(name, help, { type: "error" }),
  });
  const signing = { request_type: "csr" };
  const failedScrapes = "Scrapes that failed, by what was scraped.";
  const metrics: AgentMetrics = {
    dnsRequests: counter("dns_requests_total", "DNS requests."),
    dnsUpstreamRequests: counter("dns_upstream_requests_total", "DNS requests that were passed on to name servers."),
    dnsUpstreamFailures: counter("dns_upstream_failures_total", "DNS requests that no name server answered."),
    dnsUpstreamSeconds: registry.histogram(
      "dns_upstream_request_duration_seconds",
      "Time until a name server answered.",
      UPSTREAM_DNS_BUCKETS,
    ),
    dnsCache: registry.counters("dns_forward_cache_lookups_total", "Forwarded DNS questions by what was cached.", {
      result: ["hit", "miss", "stale"],
    }),
    xdsRequests: counter("xds_proxy_requests", "xDS requests to the control plane."),
    xdsResponses: counter("xds_proxy_responses", "xDS responses of the control plane."),
    istiodConnectionFailures: counter("istiod_connection_failures", "Connections to the control plane that failed."),
    istiodTerminations: terminations("istiod_connection_terminations", "Ended streams to the control plane."),
    envoyTerminations: terminations("envoy_connection_terminations", "Ended streams of Envoy."),
    largestXdsRequest: undefined,
    secretSendSeconds: registry.histogram(
      "pilot_xds_send_time",
      "Time until a secret was sent to Envoy.",
      SEND_BUCKETS,
    ),
    refusedSecrets: counter("pilot_total_xds_rejects", "Responses that Envoy refused.", { type: "sds" }),
    signRequests: counter("num_outgoing_requests", "Requests to the certificate authority.", signing),
    failedSignRequests: counter(
      "num_failed_outgoing_requests",
      "Failed requests to the certificate authority.",
      signing,
    ),
    signRetries: counter("num_outgoing_retries", "Repeated requests to the certificate authority.", signing),
    signMilliseconds: counter("outgoing_latency", "Time spent on requests to the certificate authority.", signing),
    wasm: wasmMetrics(registry),
    failedFileWatches: counter("num_file_watcher_failures_total", "Certificate files that could not be watched."),
    failedFileSecrets: counter("num_file_secret_failures_total", "Certificate files that could not be used."),
    scrapes: counter("scrapes_total", "Scrapes of the merged metrics."),
    failedScrapes: {
      envoy: counter("scrape_failures_total", failedScrapes, { type: "envoy" }),
      application: counter("scrape_failures_total", failedScrapes, { type: "application" }),
    },
    certificateExpiry: () => undefined,
    startupSeconds: undefined,
    text: () => registry.text(),
  };
  gauge("cert_expiry_seconds", "Seconds until the certificate expires.", {
    read: () => metrics.certificateExpiry(),
    labels: { resource_name: "default" },
  });
  gauge("pilot_xds_recv_max", "Bytes of the largest request of Envoy so far.", {
    read: () => metrics.largestXdsRequest,
  });
  gauge("startup_duration_seconds", "Seconds from start to ready.", { read: () => metrics.startupSeconds });
  for (const { name, help, ...options } of processMetrics()) gauge(name, help, options);
  return metrics;
}

const CONVERSION_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];

function wasmMetrics(registry: Registry): WasmMetrics {
  const metrics: WasmMetrics = {
    cacheEntries: () => undefined,
    cacheLookups: registry.counters("wasm_cache_lookup_count", "Lookups of kept Wasm modules.", {
      hit: ["true", "false"],
    }),
    fetches: registry.counters("wasm_remote_fetch_count", "Fetches of Wasm modules.", {
      result: ["success", "fetch_failure", "download_failure", "manifest_failure", "checksum_mismatched"],
    }),
    conversions: registry.counters("wasm_config_conversion_count", "Wasm configurations that were looked through.", {
      result: ["success", "no_remote_load", "unmarshal_failure", "fetch_failure", "miss_remote_fetch_hint"],
    }),
    conversionMilliseconds: registry.histogram(
      "wasm_config_conversion_duration",
      "Time until the Wasm modules of a response were there, in milliseconds.",
      CONVERSION_BUCKETS,
    ),
  };
  registry.gauge("wasm_cache_entries", "Wasm modules that are kept.", { read: () => metrics.cacheEntries() });
  return metrics;
}

interface Family {
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** Lines of one set of labels each, given the full name. */
  readonly samples: ((name: string) => readonly string[])[];
}

interface GaugeOptions {
  readonly read: () => number | undefined;
  /** A counter that is kept elsewhere. */
  readonly type?: "gauge" | "counter";
  readonly labels?: Labels;
}

class Registry {
  readonly #families = new Map<string, Family>();

  readonly counter = (name: string, help: string, labels: Labels = {}): Counter => {
    let value = 0;
    this.#add(name, { help, type: "counter", samples: [(full) => [`${full}${labelText(labels)} ${value}`]] });
    return {
      add: (amount = 1) => {
        value += amount;
      },
    };
  };

  /** A counter for each value of a label. */
  counters<Value extends string>(
    name: string,
    help: string,
    label: Readonly<Record<string, readonly Value[]>>,
  ): Record<Value, Counter> {
    const all = Object.entries(label).flatMap(([key, values]) =>
      values.map((value) => [value, this.counter(name, help, { [key]: value })] as const),
    );
    return Object.fromEntries(all) as Record<Value, Counter>;
  }

  /** Reads a value when it is asked for; left out while there is none. */
  readonly gauge = (name: string, help: string, { read, type = "gauge", labels = {} }: GaugeOptions): void => {
    const sample = (full: string) => {
      const value = read();
      return value === undefined ? [] : [`${full}${labelText(labels)} ${value}`];
    };
    this.#add(name, { help, type, samples: [sample] });
  };

  histogram(name: string, help: string, buckets: readonly number[]): Histogram {
    const histogram = new Histogram({ buckets });
    this.#add(name, { help, type: "histogram", samples: [(full) => histogram.lines(full)] });
    return histogram;
  }

  text(): string {
    let text = "";
    for (const [name, { help, type, samples }] of this.#families) {
      const lines = samples.flatMap((sample) => sample(name));
      if (lines.length > 0) text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("\n")}\n`;
    }
    return text;
  }

  /** Adds a family, or to one of the same name that differs by its labels. */
  #add(name: string, family: Family): void {
    const known = this.#families.get(`istio_agent_${name}`);
    if (known === undefined) this.#families.set(`istio_agent_${name}`, family);
    else known.samples.push(...family.samples);
  }
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
