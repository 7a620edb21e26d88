/**
 * The configuration of one proxy, from what an installation gives: code defaults, `defaultConfig` of the mesh file, the
 * variable PROXY_CONFIG and the annotation `proxy.istio.io/config`, each on top of the one before. A field that is given
 * replaces the field below it as a whole; only `proxyMetadata` and `proxyHeaders` are merged.
 */
import { type Millis, parseDuration } from "@mizzen/go-text/duration";
import { isGoInteger } from "#lib/env/env-kinds.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { parseJson } from "#lib/json/parse-json.ts";
import type { Problem } from "../schema/problem.ts";
import { checkProxyConfig, isPort } from "./checks.ts";
import { PROXY_CONFIG_FIELDS, RETIRED_FIELDS } from "./fields.ts";
import { type Json, knownFields, type Report, unknownField } from "./schema.ts";

/** TLS towards a service that Envoy itself calls. */
export type TlsSettings = {
  readonly mode?: "SIMPLE" | "MUTUAL" | "ISTIO_MUTUAL";
  readonly clientCertificate?: string;
  readonly privateKey?: string;
  readonly caCertificates?: string;
  readonly subjectAltNames?: readonly string[];
  readonly sni?: string;
  readonly credentialName?: string;
  readonly insecureSkipVerify?: boolean;
  readonly caCrl?: string;
};

/** A service that Envoy itself calls. */
export type RemoteService = {
  readonly address?: string;
  readonly tlsSettings?: TlsSettings;
  readonly tcpKeepalive?: { readonly probes?: number; readonly time?: string; readonly interval?: string };
};

/** How an application outside of Kubernetes is asked whether it is ready. */
export type ReadinessProbeConfig = {
  readonly initialDelaySeconds?: number;
  readonly timeoutSeconds?: number;
  readonly periodSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
  readonly httpGet?: {
    readonly path?: string;
    readonly port?: number;
    readonly host?: string;
    readonly scheme?: string;
    readonly httpHeaders?: readonly { readonly name?: string; readonly value?: string }[];
  };
  readonly tcpSocket?: { readonly host?: string; readonly port?: number };
  readonly exec?: { readonly command?: readonly string[] };
  readonly grpc?: { readonly service?: string; readonly port?: number };
};

/** Where Envoy sends spans. */
export type TracingConfig = {
  readonly zipkin?: { readonly address?: string };
  readonly lightstep?: { readonly address?: string; readonly accessToken?: string };
  readonly datadog?: { readonly address?: string };
  readonly stackdriver?: { readonly debug?: boolean };
  readonly tlsSettings?: TlsSettings;
};

/**
 * In canonical protobuf JSON, which is also how it travels in node metadata: durations as `45s`, defaults left out.
 * Fields that the agent does not read itself are kept as well.
 */
export type ProxyConfig = {
  readonly configPath: string;
  readonly binaryPath: string;
  readonly serviceCluster?: string;
  readonly tracingServiceName?: "APP_LABEL_AND_NAMESPACE" | "CANONICAL_NAME_ONLY" | "CANONICAL_NAME_AND_NAMESPACE";
  readonly drainDuration: string;
  readonly terminationDrainDuration?: string;
  readonly discoveryAddress: string;
  readonly proxyAdminPort: number;
  readonly statusPort?: number;
  readonly statNameLength?: number;
  /** Unset is NONE: no TLS towards the control plane. */
  readonly controlPlaneAuthPolicy?: "MUTUAL_TLS";
  readonly customConfigFile?: string;
  readonly proxyBootstrapTemplatePath?: string;
  readonly concurrency?: number;
  readonly statsdUdpAddress?: string;
  readonly tracing?: TracingConfig;
  readonly envoyAccessLogService?: RemoteService;
  readonly envoyMetricsService?: RemoteService;
  /** Of older versions. */
  readonly envoyMetricsServiceAddress?: string;
  readonly proxyMetadata?: Readonly<Record<string, string>>;
  readonly privateKeyProvider?: { readonly cryptomb?: PollingKeyProvider; readonly qat?: PollingKeyProvider };
  readonly runtimeValues?: Readonly<Record<string, string>>;
  readonly extraStatTags?: readonly string[];
  readonly proxyStatsMatcher?: {
    readonly inclusionPrefixes?: readonly string[];
    readonly inclusionSuffixes?: readonly string[];
    readonly inclusionRegexps?: readonly string[];
  };
  readonly fileFlushInterval?: string;
  readonly fileFlushMinSizeKb?: number;
  readonly statsCompression?: boolean;
  readonly readinessProbe?: ReadinessProbeConfig;
};

/** Hardware that does what private keys are for. */
export type PollingKeyProvider = {
  readonly pollDelay?: string;
  readonly fallback?: boolean;
};

/** What holds where nothing else is said. */
export const DEFAULT_PROXY_CONFIG: ProxyConfig = {
  binaryPath: "/usr/local/bin/envoy",
  configPath: "./etc/istio/proxy",
  controlPlaneAuthPolicy: "MUTUAL_TLS",
  discoveryAddress: "istiod.istio-system.svc:15012",
  drainDuration: "45s",
  proxyAdminPort: 15000,
  serviceCluster: "istio-proxy",
  statNameLength: 189,
  statusPort: 15020,
  terminationDrainDuration: "5s",
};

/** The texts to read, all optional, and the values that command line and environment put on top. */
export interface ProxyConfigSources {
  readonly meshFile?: { readonly path: string; readonly text: string } | undefined;
  /** PROXY_CONFIG */
  readonly environment?: string | undefined;
  /** Of the pod. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** `--concurrency`; 0 is unset. */
  readonly concurrency?: number;
  /** ISTIO_CPU_LIMIT: as many worker threads where nothing else is said; 0 is unset. */
  readonly cpuLimit?: number;
  /** `--serviceCluster`, for a configuration that leaves it empty. */
  readonly serviceCluster?: string;
  /** TERMINATION_DRAIN_DURATION_SECONDS of older installations, which replaces the configured one. */
  readonly terminationDrainSeconds?: number | undefined;
}

/** A problem, and which of the sources it is in. */
export interface ProxyConfigProblem extends Problem {
  readonly source: string;
}

/** The configuration, unless there are errors. */
export interface ProxyConfigResult {
  readonly config: ProxyConfig | undefined;
  readonly problems: readonly ProxyConfigProblem[];
}

const CONFIG_ANNOTATION = "proxy.istio.io/config";
const DISCOVERY_ADDRESS_ANNOTATION = "sidecar.istio.io/discoveryAddress";
const STATUS_PORT_ANNOTATION = "status.sidecar.istio.io/port";

/** Reads all sources and checks the result. Every problem is reported, not only the first. */
export async function readProxyConfig(sources: ProxyConfigSources): Promise<ProxyConfigResult> {
  const problems: ProxyConfigProblem[] = [];
  const reporter =
    (source: string): Report =>
    (field, message, severity = "error") => {
      const isKnown = problems.some((known) => known.field === field && known.message === message);
      if (!isKnown) problems.push({ source, field, message, severity });
    };

  let merged: Layer = { ...DEFAULT_PROXY_CONFIG };
  const { meshFile, environment = "", annotations = {} } = sources;
  if (meshFile !== undefined) {
    const report = reporter(`mesh config file ${meshFile.path}`);
    merged = overlayProxyConfig(merged, await defaultConfigOf(meshFile.text, report), report);
    // As by Istio's agent, a mesh config must hold by itself, whatever is laid over it.
    checkProxyLayer(merged, report);
  }
  const texts = [
    ["environment variable PROXY_CONFIG", environment],
    [`annotation ${CONFIG_ANNOTATION}`, annotations[CONFIG_ANNOTATION] ?? ""],
  ] as const;
  for (const [source, text] of texts) {
    const report = reporter(source);
    if (text.trim() !== "") merged = overlayProxyConfig(merged, await readProxyConfigText(text, report), report);
  }
  const checked = withSingleValues(merged, sources);
  checkProxyConfig(checked, reporter("effective proxy configuration"));
  const config = withStatusPort(checked, annotations[STATUS_PORT_ANNOTATION], reporter);
  return { config: problems.some(({ severity }) => severity === "error") ? undefined : config, problems };
}

/** The length of a duration of the configuration. */
export function durationMs(duration: string | undefined): Millis {
  return parseDuration(duration ?? "0s") ?? 0;
}

/** Some fields of a configuration. */
export type Layer = Readonly<Record<string, Json>>;

async function defaultConfigOf(text: string, report: Report): Promise<Readonly<Record<string, unknown>>> {
  const { defaultConfig } = await readProxyConfigText(text, report);
  if (defaultConfig === undefined || defaultConfig === null) return {};
  if (isRecord(defaultConfig)) return defaultConfig;
  report("defaultConfig", "must be an object");
  return {};
}

/** Reads an object from YAML or JSON. JSON, which injection writes, does not load the YAML reader. */
export async function readProxyConfigText(text: string, report: Report): Promise<Readonly<Record<string, unknown>>> {
  const value = readJson(text) ?? (await readYaml(text, report));
  if (value === undefined || value === null || isRecord(value)) return value ?? {};
  report("", "must be an object");
  return {};
}

function readJson(text: string): unknown {
  if (!text.trimStart().startsWith("{")) return undefined;
  try {
    return parseJson(text);
  } catch {
    return undefined; // it may be YAML in flow style, whose reader gives the better message
  }
}

async function readYaml(text: string, report: Report): Promise<unknown> {
  const { readDocument } = await import("#lib/yaml/read.ts");
  const { value, error } = readDocument(text);
  if (error !== undefined) report("", `line ${error.line} ${error.message}`);
  return value;
}

/** Lays what was given over what is there. */
export function overlayProxyConfig(below: Layer, given: Readonly<Record<string, unknown>>, report: Report): Layer {
  const result: Record<string, Json> = { ...below };
  let isTraced = false;
  const onUnknown = (name: string) => {
    if (!RETIRED_FIELDS.has(name)) unknownField(name, report);
  };
  for (const [field, read, item] of knownFields(PROXY_CONFIG_FIELDS, given, onUnknown)) {
    let isReadable = true;
    const value = read(item, field, (at, message, severity) => {
      isReadable &&= severity === "warning";
      report(at, message, severity);
    });
    // What is below stays: a value that is wrong is not missing as well.
    if (!isReadable) continue;
    // Of the two, the second counts wherever it stands in the text.
    if (field === "serviceCluster" && isTraced) continue;
    isTraced ||= field === "tracingServiceName";
    if (field === "serviceCluster") delete result.tracingServiceName;
    if (field === "tracingServiceName") delete result.serviceCluster;
    const before = below[field];
    if (MERGED_FIELDS.has(field) && isJsonObject(before))
      result[field] = { ...inherited(field, before), ...(isJsonObject(value) ? value : {}) };
    else if (value === undefined) delete result[field];
    else result[field] = value;
  }
  return result;
}

const MERGED_FIELDS: ReadonlySet<string> = new Set(["proxyMetadata", "proxyHeaders"]);
/** Of `proxyHeaders` not all fields outlive headers that are given above them. */
const INHERITED_HEADERS: ReadonlySet<string> = new Set([
  "forwardedClientCert",
  "requestId",
  "attemptCount",
  "server",
  "envoyDebugHeaders",
]);

function inherited(field: string, before: Layer): Layer {
  if (field !== "proxyHeaders") return before;
  return Object.fromEntries(Object.entries(before).filter(([name]) => INHERITED_HEADERS.has(name)));
}

function isJsonObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return isRecord(value);
}

/** What single flags, variables and annotations say on top of the merged texts. */
function withSingleValues(merged: Layer, sources: ProxyConfigSources): ProxyConfig {
  const { concurrency = 0, cpuLimit = 0, serviceCluster = "", terminationDrainSeconds, annotations = {} } = sources;
  const result: Record<string, Json> = { ...merged };
  if (result.concurrency === undefined && cpuLimit > 0) result.concurrency = cpuLimit;
  if (concurrency !== 0) result.concurrency = concurrency;
  if (result.serviceCluster === "") result.serviceCluster = serviceCluster;
  if (terminationDrainSeconds !== undefined) result.terminationDrainDuration = `${terminationDrainSeconds}s`;
  const discoveryAddress = annotations[DISCOVERY_ADDRESS_ANNOTATION];
  if (discoveryAddress !== undefined) result.discoveryAddress = discoveryAddress;
  return result as ProxyConfig;
}

/** What the annotation says counts after all checks: other than a configuration it may ask for no port at all. */
function withStatusPort(
  config: ProxyConfig,
  annotated: string | undefined,
  reporter: (source: string) => Report,
): ProxyConfig {
  if (annotated === undefined) return config;
  const { statusPort: _, ...withoutPort } = config;
  const port = isGoInteger(annotated) ? Number(annotated) : Number.NaN;
  if (isPort(port)) return { ...config, statusPort: port };
  if (port === 0) return withoutPort;
  reporter(`annotation ${STATUS_PORT_ANNOTATION}`)(
    "",
    `must be a port from 1 to 65535, or 0 for none, not "${annotated}"; it is ignored`,
    "warning",
  );
  return config;
}

/** What is wrong with a configuration that was laid together from several. */
export function checkProxyLayer(layer: Layer, report: Report): void {
  checkProxyConfig(layer as ProxyConfig, report);
}
