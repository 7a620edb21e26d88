/** The flags of `pilot-discovery discovery`: istiod's, with its names and defaults. */
import { type Command, Option } from "commander";

type FlagKind = "text" | "list" | "repeated" | "switch" | "duration" | "number" | "address";

export interface Flag {
  readonly name: string;
  readonly short?: string;
  readonly kind: FlagKind;
  readonly default: string | readonly string[];
  readonly help: string;
  /** Why giving it changes nothing yet. */
  readonly noEffect?: string;
}

const PLACEHOLDERS: Readonly<Record<FlagKind, string>> = {
  text: "<text>",
  list: "<a,b>",
  repeated: "<path>",
  switch: "[true|false]",
  duration: "<duration>",
  number: "<number>",
  address: "<address>",
};

/** What was given or is the default, as text; lists and repeated flags hold several. */
export type FlagValues = Readonly<Record<string, readonly string[]>>;

export interface ParsedFlags {
  readonly values: FlagValues;
  /** Names of those that stand on the command line. */
  readonly given: ReadonlySet<string>;
}

const ENDLESS = "2562047h47m16.854775807s";

const FLAGS: readonly Flag[] = [
  { name: "caCertFile", kind: "text", default: "", help: "roots of client certificates, with --tlsCertFile" },
  {
    name: "clusterAliases",
    kind: "list",
    default: [],
    help: "alias1=cluster1,...: other names by which proxies call their cluster",
  },
  { name: "clusterID", kind: "text", default: "Kubernetes", help: "cluster to which this control plane belongs" },
  {
    name: "clusterRegistriesNamespace",
    kind: "text",
    default: "istio-system",
    help: "namespace of remote cluster secrets",
    noEffect: "Secrets of other clusters are looked for in --namespace",
  },
  {
    name: "cniNamespace",
    kind: "text",
    default: "istio-system",
    help: "namespace of istio-cni",
    noEffect: "istio-cni is not looked at",
  },
  {
    name: "configDir",
    kind: "repeated",
    default: [],
    help: "folder or file with configuration, watched; may be repeated",
  },
  {
    name: "ctrlz_address",
    kind: "text",
    default: "localhost",
    help: "address of ControlZ; * for all, unix:PATH for a private socket with all topics",
  },
  {
    name: "ctrlz_port",
    kind: "number",
    default: "9876",
    help: "port of ControlZ",
  },
  { name: "domain", kind: "text", default: "cluster.local", help: "DNS domain of the cluster" },
  { name: "grpcAddr", kind: "address", default: ":15010", help: "xDS in plain text; empty turns it off" },
  { name: "httpAddr", kind: "address", default: ":8080", help: "/ready, /version and /debug; empty turns it off" },
  {
    name: "httpsAddr",
    kind: "address",
    default: ":15017",
    help: "injection and validation; empty turns them off",
  },
  { name: "keepaliveInterval", kind: "duration", default: "30s", help: "a quiet connection is pinged after this time" },
  {
    name: "keepaliveMaxServerConnectionAge",
    kind: "duration",
    default: ENDLESS,
    help: "connections are closed gracefully at this age",
  },
  {
    name: "keepaliveTimeout",
    kind: "duration",
    default: "10s",
    help: "a connection is closed when a ping is not answered in this time",
  },
  { name: "kubeconfig", kind: "text", default: "", help: "Kubernetes configuration file" },
  {
    name: "kubernetesApiBurst",
    kind: "number",
    default: "160",
    help: "burst towards the Kubernetes API",
    noEffect: "requests are few, and not limited",
  },
  {
    name: "kubernetesApiQPS",
    kind: "number",
    default: "80",
    help: "requests per second to the Kubernetes API",
    noEffect: "requests are few, and not limited",
  },
  { name: "log_as_json", kind: "switch", default: "false", help: "log JSON lines" },
  { name: "log_caller", kind: "text", default: "", help: "scopes whose lines say from where they come; all for all" },
  { name: "log_output_level", kind: "text", default: "", help: "level by scope: default:info,ads:debug" },
  {
    name: "log_stacktrace_level",
    kind: "text",
    default: "default:none",
    help: "least severe level that gets a stack, by scope: default:error,ads:warn",
  },
  { name: "log_target", kind: "repeated", default: ["stdout"], help: "stdout, stderr or a file; may be repeated" },
  { name: "meshConfig", kind: "text", default: "./etc/istio/config/mesh", help: "file with the mesh config, watched" },
  {
    name: "monitoringAddr",
    kind: "address",
    default: ":15014",
    help: "/metrics, /version and /debug; empty moves them to --httpAddr",
  },
  { name: "namespace", short: "n", kind: "text", default: "istio-system", help: "namespace of this control plane" },
  {
    name: "networksConfig",
    kind: "text",
    default: "./etc/istio/config/meshNetworks",
    help: "file with the mesh networks, watched",
  },
  {
    name: "on-unreadable-policy",
    kind: "text",
    default: "deny",
    help: "deny: a security object that cannot be read denies what it could have denied; ignore: it has no effect",
  },
  {
    name: "profile",
    kind: "switch",
    default: "true",
    help: "profiling under /debug/pprof",
    noEffect: "there is no pprof in Node",
  },
  {
    name: "registries",
    kind: "list",
    default: ["Kubernetes"],
    help: "Kubernetes, or nothing: then all comes from --configDir",
  },
  {
    name: "secureGRPCAddr",
    kind: "address",
    default: ":15012",
    help: "xDS and certificates over TLS; empty turns it off",
  },
  { name: "shutdownDuration", kind: "duration", default: "10s", help: "time that streams have to end after SIGTERM" },
  {
    name: "tls-cipher-suites",
    kind: "list",
    default: [],
    help: "cipher suites of the TLS servers",
    noEffect: "Node's own choice is used",
  },
  { name: "tlsCertFile", kind: "text", default: "", help: "certificate of the TLS server, instead of one by the CA" },
  { name: "tlsKeyFile", kind: "text", default: "", help: "its private key" },
  {
    name: "vklog",
    kind: "number",
    default: "0",
    help: "verbosity of the Kubernetes client",
    noEffect: "there is one log: see --log_output_level",
  },
];

/** Adds the flags to a command. Defaults that an environment variable sets are given by name. */
export function addFlags(command: Command, defaults: Readonly<Record<string, string>>): void {
  for (const flag of FLAGS) {
    const names = flag.short === undefined ? `--${flag.name}` : `-${flag.short}, --${flag.name}`;
    const option = new Option(`${names} ${PLACEHOLDERS[flag.kind]}`, helpOf(flag, defaults[flag.name] ?? flag.default));
    option.argParser((value: string, previous: readonly string[] | undefined) => valuesOf(flag, value, previous));
    command.addOption(option);
  }
}

/** Reads what commander found. */
export function flagsOf(command: Command, defaults: Readonly<Record<string, string>>): ParsedFlags {
  const options: Record<string, unknown> = command.opts();
  const values: Record<string, readonly string[]> = {};
  const given = new Set<string>();
  for (const flag of FLAGS) {
    const option = command.options.find(({ long }) => long === `--${flag.name}`);
    const value = options[option?.attributeName() ?? ""];
    if (value !== undefined) given.add(flag.name);
    // A switch without a value is `true` for commander.
    values[flag.name] = isTextList(value)
      ? value
      : [value === true ? "true" : (defaults[flag.name] ?? flag.default)].flat();
  }
  return { values, given };
}

/** One line for each flag in Istio's manner: `FLAG: --domain="cluster.local"`. */
export function describeFlags(values: FlagValues): readonly string[] {
  return FLAGS.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(({ name, kind }) => {
    const given = values[name] ?? [];
    const text = kind === "list" || kind === "repeated" ? `[${given.join(",")}]` : (given[0] ?? "");
    return `FLAG: --${name}="${text}"`;
  });
}

/** Sentences on flags that ask for something that does not happen yet. */
export function ineffectiveFlags({ values, given }: ParsedFlags): readonly string[] {
  return FLAGS.flatMap(({ name, noEffect }) => {
    const isWished = (values[name] ?? []).some((value) => value !== "") && given.has(name);
    return noEffect !== undefined && isWished ? [`--${name}: ${noEffect}`] : [];
  });
}

function valuesOf({ kind }: Flag, value: string, previous: readonly string[] | undefined): readonly string[] {
  if (kind === "repeated") return [...(previous ?? []), value];
  if (kind === "list") return [...(previous ?? []), ...value.split(",").filter((part) => part !== "")];
  return [value];
}

function helpOf({ help, noEffect }: Flag, value: string | readonly string[]): string {
  const shown = typeof value === "string" ? value : value.join(",");
  return [
    help,
    ...(shown === "" ? [] : [`(default ${shown})`]),
    ...(noEffect === undefined ? [] : ["(no effect yet)"]),
  ].join(" ");
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
