/** Everything that flags and environment say, read once into one typed value. */
import { parseDuration } from "@mizzen/go-text/duration";
import { type JwtRule, parseJwtRule } from "#authn/jwt-rule.ts";
import type { Env } from "#lib/env/env-table.ts";
import { readEnvironment } from "#lib/env/env-table.ts";
import { parseGoBool } from "#lib/go/go-bool.ts";
import type { ConnectionLimits } from "#lib/grpc/grpc-listener.ts";
import { type LogLevel, parseLogLevels } from "#lib/log/log.ts";
import { type ListenAddress, parseListenAddress } from "#lib/net/listen-address.ts";
import type { Features } from "#model/features.ts";
import type { FetchRules } from "#sources/jwks/fetch-keys.ts";
import type { RemoteRules } from "#sources/kubernetes/remote-clusters.ts";
import type { DebounceSettings } from "#xds/timing/debounce.ts";
import { type CaSettings, caSettings } from "./ca-settings.ts";
import { type ClusterAliases, parseAliases } from "./cluster-aliases.ts";
import { DISCOVERY_ENVIRONMENT, type DiscoveryValues } from "./environment.ts";
import { featuresOf } from "./features.ts";
import type { FlagValues, ParsedFlags } from "./flags.ts";
import { type KubernetesSettings, kubernetesSettings } from "./kubernetes-settings.ts";
import { type WebhookConfig, webhookConfig } from "./webhook-config.ts";

export interface DiscoveryConfig {
  readonly folders: readonly string[];
  /** The networks of the mesh; empty for none. */
  readonly networksFile: string;
  readonly meshConfig: {
    readonly file: string;
    /** Named on the command line, so that it is expected to be there or to come. */
    readonly isGiven: boolean;
  };
  /** Undefined when the flags ask for no Kubernetes. */
  readonly kubernetes: ({ readonly kubeConfig: string } & Partial<KubernetesSettings>) | undefined;
  /** Further clusters. */
  readonly remotes?: RemoteRules;
  readonly clusterAliases?: ClusterAliases;
  /** Further clusters that name this control plane get roots and webhooks from it. */
  readonly leadsClusters?: boolean;
  readonly features: Features;
  readonly namespace: string;
  /** Empty outside of Kubernetes. */
  readonly podName: string;
  /** What tokens of Kubernetes have to be meant for. */
  readonly tokenAudiences: readonly string[];
  /** Empty when none is set. */
  readonly revision: string;
  /** Undefined: that listener is off. */
  readonly listen: Readonly<Record<"http" | "monitoring" | "grpc" | "secureGrpc", ListenAddress | undefined>>;
  readonly keepalive: ConnectionLimits;
  readonly shutdownMs: number;
  readonly ca: CaSettings;
  /** Of the operator; otherwise the CA signs a certificate for us. */
  readonly tlsFiles: { readonly certFile: string; readonly keyFile: string; readonly caFile: string } | undefined;
  readonly customHosts: readonly string[];
  readonly jwtRule: JwtRule | undefined;
  /** How keys of token issuers are fetched. */
  readonly keys: KeySettings;
  /** Gateways between networks that are known by a host name are looked up. */
  readonly resolvesGatewayNames: boolean;
  readonly debugOnHttp: boolean;
  /** Metrics are for programs of the same machine only. */
  readonly localMetrics?: boolean;
  /** Which callers see more than their own namespace, beside those of the root namespace; none when not given. */
  readonly debugAccess?: {
    readonly keepsApart: boolean;
    readonly seeingAll: readonly string[];
  };
  /** ControlZ; not served when not given. */
  readonly controlz?: ControlzSettings;
  readonly xds: {
    /** A proxy has to be of the namespace and account that its caller proved. */
    readonly checksIdentity: boolean;
    /** Which streams have to prove who opens them; those over TLS when not given. */
    readonly proofOn?: "tls" | "all" | "none";
    /** Address ranges of gateways whose word is taken for whom they have seen; none when not given. */
    readonly trustedGateways?: readonly string[];
    /** Of gRPC calls; as those of the listener when not given. */
    readonly callLimits?: { readonly maxRequestBytes: number; readonly maxStreams: number | undefined };
    /** New streams a second; 0 for any number. */
    readonly requestsPerSecond: number;
    /** Counts which EnvoyFilters have an effect. */
    readonly countsPatches: boolean;
    /** How long changes wait for others, where the operator said so. */
    readonly debounce?: DebounceSettings;
  };
  /** How workloads register themselves; they do not when not given. */
  readonly registration?: RegistrationSettings | undefined;
  /** Conditions of objects are written: how many proxies have them. */
  readonly writesStatus?: boolean;
  /** Objects are analysed, with such pauses, and what is found is written into their status; undefined: they are not. */
  readonly analysisMs?: number | undefined;
  /** Undefined: they are off. */
  readonly webhooks?: WebhookConfig | undefined;
  readonly log: LogSettings;
}

export interface KeySettings extends Omit<FetchRules, "extraRoots" | "clusterDomain"> {
  readonly refreshMs: number;
  /** Certificates that servers of keys may have beside the usual ones; it need not exist. */
  readonly extraRootsFile: string;
}

export interface ControlzSettings {
  /** A port, or a unix socket for the own account. */
  readonly address: ListenAddress | { readonly socket: string };
  /** Shown there, like the command line. */
  readonly env: Env;
  readonly commandLine: readonly string[];
}

export interface RegistrationSettings {
  /** How long a workload may be away before its entry goes. */
  readonly graceMs: number;
  /** Only who proved to be the workload of an entry may register it. */
  readonly checksIdentity: boolean;
}

export interface LogSettings {
  readonly json: boolean;
  readonly levels: Readonly<Record<string, LogLevel>>;
  /** Least severe level that gets a stack, by scope. */
  readonly stackLevels?: Readonly<Record<string, LogLevel>>;
  /** Scopes whose lines say from where they come. */
  readonly callers?: ReadonlySet<string>;
  readonly targets: readonly string[];
}

export interface ParsedConfig {
  readonly config: DiscoveryConfig;
  /** Every problem, one line each; the config is only good without any. */
  readonly problems: readonly string[];
  /** Wrong values of variables in whose place the default holds. */
  readonly warnings: readonly string[];
}

/** Defaults of flags that the environment sets. */
export function flagDefaults(given: Env): Readonly<Record<string, string>> {
  const { values: env } = readEnvironment(DISCOVERY_ENVIRONMENT, given);
  const namespace = env.POD_NAMESPACE;
  return {
    clusterID: env.CLUSTER_ID,
    keepaliveInterval: env.GRPC_KEEPALIVE_INTERVAL,
    keepaliveTimeout: env.GRPC_KEEPALIVE_TIMEOUT,
    namespace,
    cniNamespace: namespace,
    clusterRegistriesNamespace: namespace,
  };
}

function hasKubernetes(flag: FlagReader): boolean {
  const registries = flag.all("registries").filter((name) => name !== "");
  const unknown = registries.filter((name) => name !== "Kubernetes");
  flag.problems.push(...unknown.map((name) => `--registries: service registry "${name}" is not supported`));
  return registries.includes("Kubernetes");
}

function unreadableDeny(flag: FlagReader): boolean {
  const value = flag.text("on-unreadable-policy");
  if (value !== "deny" && value !== "ignore") {
    flag.problems.push(`--on-unreadable-policy: must be "deny" or "ignore", not "${value}"`);
  }
  return value !== "ignore";
}

function clusterAliases(flag: FlagReader): ClusterAliases {
  const { aliases, problems } = parseAliases(flag.all("clusterAliases"));
  flag.problems.push(...problems);
  return aliases;
}

function remoteRules(env: DiscoveryValues, environment: Env): RemoteRules {
  return {
    patienceMs: Math.max(0, env.PILOT_REMOTE_CLUSTER_TIMEOUT),
    allowed: new Set(env.PILOT_INSECURE_MULTICLUSTER_KUBECONFIG_OPTIONS),
    // Without Services that select entries there is nothing for them to do, as in istiod.
    withEntries: env.PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY && env.PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES,
    environment,
  };
}

/** Less than a second is taken for a mistake, as by Istio. */
function analysisInterval(env: DiscoveryValues): number | undefined {
  const interval = env.PILOT_ANALYSIS_INTERVAL;
  return env.PILOT_ENABLE_ANALYSIS ? (interval < 1_000 ? ANALYSIS_MS : interval) : undefined;
}

const ANALYSIS_MS = 10_000;

function registrationSettings(env: DiscoveryValues): RegistrationSettings | undefined {
  const settings = {
    graceMs: env.PILOT_WORKLOAD_ENTRY_GRACE_PERIOD,
    checksIdentity: env.ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY,
  };
  return env.PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION ? settings : undefined;
}

/** Reads flags and environment. The command line is only shown. */
export function parseDiscoveryConfig(
  flags: ParsedFlags,
  given: Env,
  commandLine: readonly string[] = [],
): ParsedConfig {
  const { values: env, problems, warnings } = readEnvironment(DISCOVERY_ENVIRONMENT, given);
  const rule = jwtRule(env.JWT_RULE);
  const flag = new FlagReader(flags.values);
  const config: DiscoveryConfig = {
    folders: flag.all("configDir"),
    meshConfig: { file: flag.text("meshConfig"), isGiven: flags.given.has("meshConfig") },
    networksFile: flag.text("networksConfig"),
    kubernetes: hasKubernetes(flag) ? { kubeConfig: flag.text("kubeconfig"), ...kubernetesSettings(env) } : undefined,
    remotes: remoteRules(env, given),
    clusterAliases: clusterAliases(flag),
    leadsClusters: env.EXTERNAL_ISTIOD,
    features: featuresOf(env, {
      domain: flag.text("domain"),
      clusterId: flag.text("clusterID"),
      unreadableDeny: unreadableDeny(flag),
    }),
    namespace: flag.text("namespace"),
    podName: env.POD_NAME,
    tokenAudiences: env.TOKEN_AUDIENCES.split(","),
    revision: env.REVISION,
    listen: {
      http: flag.address("httpAddr"),
      monitoring: flag.address("monitoringAddr"),
      grpc: flag.address("grpcAddr"),
      secureGrpc: flag.address("secureGRPCAddr"),
    },
    keepalive: {
      intervalMs: flag.durationMs("keepaliveInterval"),
      timeoutMs: flag.durationMs("keepaliveTimeout"),
      maxConnectionAgeMs: maxConnectionAge(flags, flag),
    },
    shutdownMs: flag.durationMs("shutdownDuration"),
    ca: caSettings(env),
    tlsFiles: tlsFiles(flag),
    customHosts: env.ISTIOD_CUSTOM_HOST,
    jwtRule: rule.value,
    keys: keySettings(env),
    resolvesGatewayNames: env.RESOLVE_HOSTNAME_GATEWAYS,
    debugOnHttp: env.ENABLE_DEBUG_ON_HTTP,
    localMetrics: env.METRICS_LOCALHOST_ACCESS_ONLY,
    debugAccess: {
      keepsApart: env.ENABLE_DEBUG_ENDPOINT_AUTH,
      seeingAll: env.DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES,
    },
    xds: {
      checksIdentity: env.PILOT_ENABLE_XDS_IDENTITY_CHECK,
      proofOn: !env.XDS_AUTH ? "none" : env.XDS_AUTH_PLAINTEXT ? "all" : "tls",
      trustedGateways: env.TRUSTED_GATEWAY_CIDR,
      callLimits: {
        maxRequestBytes: env.ISTIO_GPRC_MAXRECVMSGSIZE,
        maxStreams: env.ISTIO_GPRC_MAXSTREAMS,
      },
      requestsPerSecond: env.PILOT_MAX_REQUESTS_PER_SECOND,
      countsPatches: env.PILOT_ENVOY_FILTER_STATS,
      debounce: debounceSettings(env),
    },
    registration: registrationSettings(env),
    writesStatus: env.PILOT_ENABLE_STATUS,
    analysisMs: analysisInterval(env),
    controlz: { address: controlzAddress(flag), env: given, commandLine },
    webhooks: webhookConfig(env, flag.address("httpsAddr"), given),
    log: logSettings(flag),
  };
  return { config, problems: [...flag.problems, ...problems, ...rule.problems], warnings };
}

const UNIX = "unix:";

function controlzAddress(flag: FlagReader): ControlzSettings["address"] {
  const text = flag.text("ctrlz_port");
  const port = Number(text);
  const isPort = text !== "" && Number.isInteger(port) && port >= 0 && port <= 65_535;
  if (!isPort) flag.problems.push(`--ctrlz_port: "${text}" is not a port`);
  const host = flag.text("ctrlz_address");
  if (host.startsWith(UNIX)) return { socket: host.slice(UNIX.length) };
  return { host: host === "*" ? "" : host === "localhost" ? "127.0.0.1" : host, port: isPort ? port : 0 };
}

/** The default means for ever, in the number of nanoseconds that Go can count. */
function maxConnectionAge({ given }: ParsedFlags, flag: FlagReader): number | undefined {
  return given.has("keepaliveMaxServerConnectionAge") ? flag.durationMs("keepaliveMaxServerConnectionAge") : undefined;
}

function debounceSettings(env: DiscoveryValues): DebounceSettings {
  const afterMs = env.PILOT_DEBOUNCE_AFTER;
  const maxMs = env.PILOT_DEBOUNCE_MAX;
  const endpointsWait = env.PILOT_ENABLE_EDS_DEBOUNCE;
  return {
    ...(afterMs !== undefined && { afterMs }),
    ...(maxMs !== undefined && { maxMs }),
    ...(endpointsWait !== undefined && { endpointsWait }),
  };
}

function tlsFiles(flag: FlagReader): DiscoveryConfig["tlsFiles"] {
  const files = {
    certFile: flag.text("tlsCertFile"),
    keyFile: flag.text("tlsKeyFile"),
    caFile: flag.text("caCertFile"),
  };
  const named = Object.values(files).filter((file) => file !== "").length;
  if (named === 0) return undefined;
  if (named < 3) flag.problems.push("--tlsCertFile, --tlsKeyFile and --caCertFile belong together: give all three");
  return files;
}

function jwtRule(text: string): { readonly value: JwtRule | undefined; readonly problems: readonly string[] } {
  if (text === "") return { value: undefined, problems: [] };
  const { value, problems } = parseJwtRule(text);
  return { value, problems: problems.map(({ field, message }) => `JWT_RULE: ${`${field} ${message}`.trim()}`) };
}

function keySettings(env: DiscoveryValues): KeySettings {
  return {
    allowLocal: env.PILOT_JWKS_ALLOW_LOCAL,
    allowedRanges: env.ALLOWED_CIDRS_IN_JWKS_URIS,
    blockedRanges: env.BLOCKED_CIDRS_IN_JWKS_URIS,
    insecure: env.JWKS_RESOLVER_INSECURE_SKIP_VERIFY,
    refreshMs: env.PILOT_JWT_PUB_KEY_REFRESH_INTERVAL,
    extraRootsFile: "/cacerts/extra.pem",
  };
}

function logSettings(flag: FlagReader): LogSettings {
  const levels = (name: string) => {
    const parsed = parseLogLevels(flag.text(name));
    flag.problems.push(...parsed.problems.map((problem) => `--${name}: ${problem}`));
    return parsed.levels;
  };
  return {
    json: flag.switch("log_as_json"),
    levels: levels("log_output_level"),
    stackLevels: levels("log_stacktrace_level"),
    callers: new Set(
      flag
        .text("log_caller")
        .split(",")
        .filter((scope) => scope !== ""),
    ),
    targets: flag.all("log_target"),
  };
}

/** Reads typed values from flags and collects every problem. */
class FlagReader {
  readonly problems: string[] = [];
  readonly #values: FlagValues;

  constructor(values: FlagValues) {
    this.#values = values;
  }

  all(name: string): readonly string[] {
    return this.#values[name] ?? [];
  }

  text(name: string): string {
    return this.all(name)[0] ?? "";
  }

  switch(name: string): boolean {
    const value = parseGoBool(this.text(name));
    if (value === undefined) this.problems.push(`--${name}: "${this.text(name)}" is neither true nor false`);
    return value ?? false;
  }

  durationMs(name: string): number {
    const parsed = parseDuration(this.text(name));
    if (parsed !== undefined && parsed >= 0) return parsed;
    this.problems.push(`--${name}: "${this.text(name)}" is not a duration, such as 10s`);
    return 0;
  }

  address(name: string): ListenAddress | undefined {
    const parsed = parseListenAddress(this.text(name));
    if (parsed.kind === "wrong") this.problems.push(`--${name}: ${parsed.reason}`);
    return parsed.kind === "on" ? { host: parsed.host, port: parsed.port } : undefined;
  }
}
