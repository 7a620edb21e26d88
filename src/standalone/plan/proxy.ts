/** A member's agent: the files it finds, its environment and arguments, as the injected container has them in Kubernetes. */
import { join, relative } from "node:path";
import { type GivenOptions, TEXT_OPTIONS, type TextOption } from "#capture/settings/options.ts";
import { DEFAULT_PROXY_CONFIG, type Layer } from "#config/proxy-config/proxy-config.ts";
import { withAnnotation } from "#inject/mesh/proxy-config.ts";
import { PROXY_CONFIG } from "#inject/pod/names.ts";
import { APPLICATION_SCRAPING, applicationScraping, isScrapedByAgent } from "#inject/prometheus.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { CANONICAL_NAME, CANONICAL_REVISION, canonicalService, TLS_MODE } from "#model/labels/labels.ts";
import type { AddressRange } from "../mesh/address-range.ts";
import { type Member, PROXY_ID } from "../mesh/mesh.ts";
import { type Account, type Place, ROOT } from "./enter.ts";
import { DOMAIN, type FilePlan, type FolderPlan } from "./files.ts";
import { type ProcessPlan, type Programs, processPlan } from "./process.ts";

export const PROXY_ACCOUNT: Account = { uid: PROXY_ID, gid: PROXY_ID, home: "/" };
/** Ports of agent and Envoy that must be reachable as they are. */
const UNCAPTURED_PORTS = "15090,15021,15020";
/** Envoy's threads, unless the mesh config says otherwise: many Envoys share this machine. */
const CONCURRENCY = 1;

/**
 * As in an injected pod the agent writes only where it has to. Tokens and certificates are put there by root for as long
 * as the mesh runs, and nobody else may exchange the folders on the way to them.
 */
const SECRETS = "var/run/secrets";
const READ_ONLY_FOLDERS = [
  ...["", "etc", "etc/istio", "etc/istio/pod", "var", "var/lib", "var/lib/istio", "var/run"],
  ...[SECRETS, `${SECRETS}/tokens`, `${SECRETS}/istio`],
];
const OWN_FOLDERS = [
  ...["etc/istio/proxy", "var/lib/istio/data", `${SECRETS}/workload-spiffe-uds`],
  ...[`${SECRETS}/credential-uds`, `${SECRETS}/workload-spiffe-credentials`],
];

export interface ProxyInput {
  readonly member: Member;
  readonly address: string;
  readonly range: AddressRange;
  /** Where the app is: traffic capture is set up there. */
  readonly appPlace: Place;
  /** The agent's working folder. */
  readonly folder: string;
  readonly log: string;
  readonly programs: Programs;
  readonly meshConfig: Readonly<Record<string, unknown>>;
}

export interface ProxyPlan {
  /** Where agent and Envoy are: beside the app in its network, with processes and mounts of their own. */
  readonly place: Place;
  readonly folders: readonly FolderPlan[];
  readonly files: readonly FilePlan[];
  readonly tokenFile: string;
  readonly rootCertFile: string;
  readonly process: ProcessPlan;
  /** Sets up traffic capture; a gateway has none. */
  readonly capture: (ProcessPlan & { readonly options: GivenOptions }) | undefined;
}

export function proxyPlan(input: ProxyInput): ProxyPlan {
  const { member, folder } = input;
  const pod = join(folder, "etc/istio/pod");
  return {
    place: proxyPlace(input),
    folders: [
      ...READ_ONLY_FOLDERS.map((path) => ({ path: join(folder, path), mode: 0o711, owner: 0 })),
      ...OWN_FOLDERS.map((path) => ({ path: join(folder, path), mode: 0o700, owner: PROXY_ID })),
    ],
    files: [
      { path: join(pod, "labels"), text: downwardApi(proxyLabels(member)), mode: 0o644, owner: PROXY_ID },
      { path: join(pod, "annotations"), text: downwardApi(member.annotations), mode: 0o644, owner: PROXY_ID },
    ],
    tokenFile: join(folder, SECRETS, "tokens/istio-token"),
    rootCertFile: join(folder, SECRETS, "istio/root-cert.pem"),
    process: agentProcess(input),
    capture: member.proxy === "sidecar" ? captureProcess(input) : undefined,
  };
}

/** Of the state folder it sees its own files alone: the accounts of all proxies are the same. */
export function proxyPlace({ appPlace, folder }: Pick<ProxyInput, "appPlace" | "folder">): Place {
  const { state, etc, visible } = appPlace;
  return {
    ...appPlace,
    namespaces: `${folder}.namespaces`,
    visible: [...visible, relative(state, folder), relative(state, etc)],
    owner: PROXY_ID,
  };
}

/** The member's labels with those that injection adds. */
export function proxyLabels({ labels, workload }: Pick<Member, "labels" | "workload">): Record<string, string> {
  const [service, revision] = canonicalService(labels, workload);
  return { [TLS_MODE]: "istio", [CANONICAL_NAME]: service, [CANONICAL_REVISION]: revision, ...labels };
}

/** One `key="value"` a line, as Kubernetes writes labels and annotations into a pod. */
export function downwardApi(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}\n`)
    .join("");
}

/** The process of an agent that serves one member. */
export function agentProcess(input: ProxyInput): ProcessPlan {
  const { member, address, folder, log, programs, meshConfig, range } = input;
  const { name, namespace, workload, serviceAccount } = member;
  const { type: role, ...flags } = agentFlags(member);
  const ports = member.ports.map(({ name: portName, port, protocol }) => ({
    ...(portName === "" ? {} : { name: portName }),
    containerPort: port,
    protocol,
  }));
  return processPlan({
    place: proxyPlace(input),
    account: PROXY_ACCOUNT,
    programs,
    cwd: folder,
    log,
    env: {
      // First: they must not change where the agent is in this mesh.
      ...injectedVariables(member, meshConfig),
      PILOT_CERT_PROVIDER: "istiod",
      JWT_POLICY: "third-party-jwt",
      CA_ADDR: "istiod.istio-system.svc:15012",
      POD_NAME: name,
      POD_NAMESPACE: namespace,
      INSTANCE_IP: address,
      CLOUD_PLATFORM: "none",
      HOST_IP: range.gateway,
      SERVICE_ACCOUNT: serviceAccount,
      TRUST_DOMAIN: textOf(meshConfig.trustDomain) ?? DOMAIN,
      PROXY_CONFIG: JSON.stringify(proxyConfig(programs, meshConfig)),
      ISTIO_META_CLUSTER_ID: "Kubernetes",
      ISTIO_META_NODE_NAME: "mizzen",
      ISTIO_META_MESH_ID: textOf(meshConfig.trustDomain) ?? DOMAIN,
      ISTIO_META_WORKLOAD_NAME: workload,
      ISTIO_META_OWNER: `kubernetes://apis/apps/v1/namespaces/${namespace}/deployments/${workload}`,
      ISTIO_META_POD_PORTS: JSON.stringify(ports),
      // A gateway's namespace lets it open any port (`network.ts`), so it does not call itself unprivileged.
      ...(role === "sidecar" ? { ISTIO_META_INTERCEPTION_MODE: "REDIRECT", ISTIO_META_DNS_CAPTURE: "true" } : {}),
    },
    command: [
      ...programs.agent,
      "proxy",
      role,
      ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
      `--log_output_level=${sidecarAnnotation(member, "agentLogLevel", "default:info")}`,
    ],
  });
}

/** What `pilot-agent proxy` is told: its kind, and its flags by name. */
export function agentFlags(member: Pick<Member, "proxy" | "namespace" | "annotations">) {
  return {
    type: member.proxy === "router" ? "router" : "sidecar",
    domain: `${member.namespace}.svc.${DOMAIN}`,
    proxyLogLevel: sidecarAnnotation(member, "logLevel", "warning"),
    proxyComponentLogLevel: sidecarAnnotation(member, "componentLogLevel", "misc:error"),
  };
}

function sidecarAnnotation({ annotations }: Pick<Member, "annotations">, name: string, fallback: string): string {
  return annotations[`sidecar.istio.io/${name}`] ?? fallback;
}

function proxyConfig({ envoy }: Programs, meshConfig: ProxyInput["meshConfig"]): object {
  return { binaryPath: envoy, concurrency: CONCURRENCY, ...defaultConfigOf(meshConfig) };
}

/** The variables that injection makes of what mesh and annotations say. */
function injectedVariables({ annotations }: Member, meshConfig: ProxyInput["meshConfig"]): Record<string, string> {
  const defaults = { ...DEFAULT_PROXY_CONFIG, ...defaultConfigOf(meshConfig) };
  const { proxyMetadata, statusPort } = withAnnotation(defaults, annotations[PROXY_CONFIG]);
  const merging = { statusPort: Number(statusPort), mergesMetrics: meshConfig.enablePrometheusMerge !== false };
  const scraping = isScrapedByAgent(annotations, merging) ? applicationScraping(annotations) : undefined;
  return {
    ...(scraping !== undefined && { [APPLICATION_SCRAPING]: scraping }),
    ...(isRecord(proxyMetadata) && (proxyMetadata as Record<string, string>)),
  };
}

/** The ProxyConfig of a mesh config, which was checked when it was read; empty when it has none. */
export function defaultConfigOf({ defaultConfig }: ProxyInput["meshConfig"]): Layer {
  return isRecord(defaultConfig) ? (defaultConfig as Layer) : {};
}

/** What the init container of an injected pod runs. It needs root, and sees the member's own name servers. */
function captureProcess({ member, appPlace, log, programs }: ProxyInput): ProxyPlan["capture"] {
  const options = captureOptions(member);
  const flags = Object.entries(options).map(([name, value]) => [flagOf(name), value] as const);
  const process = processPlan({
    place: appPlace,
    account: ROOT,
    programs,
    cwd: "/",
    log,
    env: {},
    command: [
      ...programs.agent,
      "istio-iptables",
      ...flags.flatMap(([flag, value]) => (value === "" ? [] : [flag, value])),
      "--redirect-dns",
      "--log_output_level=default:warn",
    ],
  });
  return { ...process, options: { ...options, redirectDns: true } };
}

/** What injection would tell `istio-iptables`, by the names of its text options. */
function captureOptions({ annotations }: Member): Record<string, string> {
  const annotation = (name: string, fallback: string) => annotations[`traffic.sidecar.istio.io/${name}`] ?? fallback;
  return {
    proxyPort: "15001",
    inboundPort: "15006",
    proxyUid: String(PROXY_ID),
    mode: "REDIRECT",
    outboundRanges: annotation("includeOutboundIPRanges", "*"),
    outboundRangesExcluded: annotation("excludeOutboundIPRanges", ""),
    inboundPorts: annotation("includeInboundPorts", "*"),
    inboundPortsExcluded: [UNCAPTURED_PORTS, annotation("excludeInboundPorts", "")]
      .filter((part) => part !== "")
      .join(","),
    outboundPorts: annotation("includeOutboundPorts", ""),
    outboundPortsExcluded: annotation("excludeOutboundPorts", ""),
  };
}

function flagOf(name: string): string {
  const option = Object.entries<TextOption>(TEXT_OPTIONS).find(([key]) => key === name)?.[1];
  if (option?.short === undefined) throw new Error(`istio-iptables has no option "${name}"`);
  return `-${option.short}`;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
