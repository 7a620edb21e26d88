/**
 * What resources depend on of a proxy, apart from what the mesh configures: cut into one small value per kind of resource,
 * so that proxies that differ in something a resource does not use still share that resource.
 */
import { isIPv4, isIPv6 } from "node:net";
import { parseDuration } from "@mizzen/go-text/duration";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { type ProxyDefaults, proxyDefaultsSchema } from "#config/mesh/proxy-defaults.ts";
import { parse } from "#config/schema/parse.ts";
import { DEFAULT_FEATURES, type Features } from "#model/features.ts";
import { CANONICAL_NAME, CANONICAL_REVISION } from "#model/labels/labels.ts";
import { isOn, textOf } from "#model/proxy/node-metadata.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import { derived, interned } from "../recipes/indexes.ts";
import { lackedFields, lackedFilters, type VersionedField } from "./capabilities.ts";
import {
  type ClusterSwitches,
  clusterSwitches,
  type HttpSwitches,
  httpSwitches,
  type ListenerSwitches,
  listenerSwitches,
  type TcpSwitches,
  tcpSwitches,
} from "./switches.ts";

/** Address families of a proxy. */
export type IpMode = "ipv4" | "ipv6" | "dual";

/** How connections reach the proxy: NONE means that nothing is captured. */
export type Interception = "REDIRECT" | "TPROXY" | "NONE";

/** Programs beside the proxy that serve secrets in the place of agent and control plane. */
export interface SecretSockets {
  /** For credentials that begin with `sds://`. */
  readonly credentialSocket?: true;
  /** For files. */
  readonly fileSocket?: true;
}

/** What clusters depend on. */
export interface ClusterTraits extends ClusterSwitches, SecretSockets {
  readonly role: MeshProxy["type"];
  readonly ipMode: IpMode;
  /** Has addresses of both families, and is to use both. */
  readonly dualStack: boolean;
  /** Looks hosts up in both families. */
  readonly looksUpBoth: boolean;
  /** Istio's build of Envoy tells the peer's workload over TCP; upstream Envoy has no such filter. */
  readonly metadataExchange: boolean;
  readonly preserveHeaderCase: boolean;
  /** Files of a certificate in place of the workload's, by node metadata TLS_CLIENT_*. */
  readonly certificate: ClientCertificate | undefined;
  /** Fields that its Envoy does not have; unset when it has all. */
  readonly lackedFields?: readonly VersionedField[];
}

/** Files on the proxy's machine. */
export interface ClientCertificate {
  readonly clientCertificate: string;
  readonly privateKey: string;
  readonly caCertificates: string;
}

/** Secrets of files that a server shows and trusts in place of the workload's; an empty name replaces nothing. */
export interface ServerSecrets {
  readonly certificate: string;
  readonly roots: string;
}

/** What chains of network filters depend on. */
export interface TcpTraits extends TcpSwitches, SecretSockets {
  readonly metadataExchange: boolean;
  /** Node metadata IDLE_TIMEOUT. */
  readonly idleTimeoutMs: number | undefined;
  /** Filters that its Envoy does not have and that are left out for it. */
  readonly lacks: readonly string[];
}

/** What HTTP connection managers depend on. */
export interface HttpTraits extends TcpTraits, HttpSwitches {
  /** Istio's build of Envoy says by ALPN which HTTP it speaks inside mutual TLS. */
  readonly alpnFilter: boolean;
  readonly http10: boolean;
  readonly headers: NonNullable<ProxyDefaults["proxyHeaders"]>;
  readonly topology: NonNullable<ProxyDefaults["gatewayTopology"]>;
  readonly tracing: NonNullable<ProxyDefaults["tracing"]>;
  /** Unset where spans are not tagged with it, so that all workloads share what they call through. */
  readonly workload: TracedWorkload | undefined;
  /** Percent of new traces that are kept where nobody says. */
  readonly defaultSampling: number;
  /** Fields that its Envoy does not have; unset when it has all. */
  readonly lackedFields?: readonly VersionedField[];
}

/** Who the workload is, for the tags of spans. */
export interface TracedWorkload {
  readonly canonicalService: string;
  readonly canonicalRevision: string;
  readonly meshId: string;
  readonly namespace: string;
  readonly clusterId: string;
}

/** What decides which listeners there are, and where. */
export interface ListenerTraits extends ListenerSwitches {
  readonly ipMode: IpMode;
  /** Has addresses of both families, and listens on both. */
  readonly dualStack: boolean;
  /** Has IPv6 addresses alone, and takes captured connections to IPv4 ones too. */
  readonly ipv4BesideIpv6: boolean;
  /** Speaks HTTP/3 where it can. */
  readonly quic: boolean;
  readonly interception: Interception;
  /** Cannot bind ports below 1024. */
  readonly unprivileged: boolean;
  /** Ports that Envoy itself has taken: status and Prometheus. */
  readonly reservedPorts: readonly number[];
  /** Where applications may use the proxy as one for HTTP; 0 for nowhere. */
  readonly httpProxyPort: number;
  readonly outboundExactBalance: boolean;
  readonly inboundExactBalance: boolean;
  /** By node metadata TLS_SERVER_*. */
  readonly serverSecrets: ServerSecrets;
}

/** All traits of a proxy; equal ones are one object as long as the mesh config is. */
export interface Traits {
  readonly cluster: ClusterTraits;
  readonly tcp: TcpTraits;
  readonly http: HttpTraits;
  readonly listener: ListenerTraits;
  /** Uses the addresses that were allocated for hosts without one: its DNS proxy gives them out. */
  readonly autoAddresses: boolean;
}

/** Reads the traits of a proxy from its node. */
export function traitsOf(mesh: MeshConfig, proxy: MeshProxy, features: Features = DEFAULT_FEATURES): Traits {
  const { metadata } = proxy;
  const config = proxyConfigOf("", metadata, mesh);
  const ipMode = ipModeOf(proxy.addresses);
  const dualStack = features.dualStack && ipMode === "dual";
  const ipv4BesideIpv6 = features.ipv4BesideIpv6 && ipMode === "ipv6";
  const quic = features.quicListeners && proxy.type === "router";
  const metadataExchange =
    features.metadataExchange &&
    proxy.extensions.has("envoy.filters.http.peer_metadata") &&
    proxy.extensions.has("envoy.filters.network.metadata_exchange");
  const idleTimeoutMs = parseDuration(textOf(metadata.IDLE_TIMEOUT));
  const lacks = lackedFilters(proxy);
  const sockets = secretSockets(metadata);
  const fields = lackedFields(proxy);
  const old = fields.length > 0 && { lackedFields: fields };
  const tcp: TcpTraits = { metadataExchange, idleTimeoutMs, lacks, ...sockets, ...tcpSwitches(features) };
  return {
    cluster: interned(mesh, {
      role: proxy.type,
      ipMode,
      dualStack,
      looksUpBoth: dualStack || ipv4BesideIpv6,
      metadataExchange,
      preserveHeaderCase: config.proxyHeaders?.preserveHttp1HeaderCase === true,
      certificate: clientCertificate(metadata),
      ...sockets,
      ...clusterSwitches(features),
      ...old,
    }),
    tcp: interned(mesh, tcp),
    http: interned(mesh, {
      ...httpTraits(tcp, proxy, { config, features }),
      ...httpSwitches(features),
      ...old,
      defaultSampling: features.traceSampling,
      workload: mesh.enableTracing && config.tracing?.enableIstioTags !== false ? tracedWorkload(proxy) : undefined,
    }),
    listener: interned(mesh, {
      ...listenerTraits(mesh, proxy),
      ...listenerSwitches(features),
      ipMode,
      dualStack,
      ipv4BesideIpv6,
      quic,
    }),
    autoAddresses: isOn(metadata.DNS_CAPTURE) && (features.autoAllocate || isOn(metadata.DNS_AUTO_ALLOCATE)),
  };
}

function httpTraits(
  tcp: TcpTraits,
  proxy: MeshProxy,
  { config, features }: { readonly config: ProxyDefaults; readonly features: Features },
): Omit<HttpTraits, "workload" | "defaultSampling"> {
  return {
    ...tcp,
    alpnFilter: features.alpnFilter && proxy.extensions.has("istio.alpn"),
    http10: features.http10 || proxy.metadata.HTTP10 === "1",
    headers: config.proxyHeaders ?? {},
    topology: config.gatewayTopology ?? {},
    tracing: config.tracing ?? {},
  };
}

function tracedWorkload({ metadata, labels }: MeshProxy): TracedWorkload {
  return {
    canonicalService: labels[CANONICAL_NAME] || "unknown",
    canonicalRevision: labels[CANONICAL_REVISION] || "latest",
    meshId: textOf(metadata.MESH_ID) || "unknown",
    namespace: textOf(metadata.NAMESPACE) || "default",
    clusterId: textOf(metadata.CLUSTER_ID) || "unknown",
  };
}

function clientCertificate(metadata: MeshProxy["metadata"]): ClientCertificate | undefined {
  const chain = textOf(metadata.TLS_CLIENT_CERT_CHAIN);
  if (chain === "") return undefined;
  return {
    clientCertificate: chain,
    privateKey: textOf(metadata.TLS_CLIENT_KEY),
    caCertificates: textOf(metadata.TLS_CLIENT_ROOT_CERT),
  };
}

function secretSockets(metadata: MeshProxy["metadata"]): SecretSockets {
  return {
    ...(metadata.credential === "true" && { credentialSocket: true }),
    ...(metadata["file-credential"] === "true" && { fileSocket: true }),
  };
}

function serverSecrets(metadata: MeshProxy["metadata"]): ServerSecrets {
  const [chain, key, roots] = ["CERT_CHAIN", "KEY", "ROOT_CERT"].map((name) => textOf(metadata[`TLS_SERVER_${name}`]));
  return { certificate: chain && key ? `file-cert:${chain}~${key}` : "", roots: roots ? `file-root:${roots}` : "" };
}

function listenerTraits(
  mesh: MeshConfig,
  { metadata }: MeshProxy,
): Omit<ListenerTraits, "ipMode" | "dualStack" | "ipv4BesideIpv6" | "quic"> {
  const mode = textOf(metadata.INTERCEPTION_MODE);
  return {
    interception: mode === "TPROXY" || mode === "NONE" ? mode : "REDIRECT",
    unprivileged: isOn(metadata.UNPRIVILEGED_POD),
    reservedPorts: ["ENVOY_STATUS_PORT", "ENVOY_PROMETHEUS_PORT"].map((name) => Number(metadata[name])).filter(Boolean),
    httpProxyPort: Number(metadata.HTTP_PROXY_PORT) || (mesh.proxyHttpPort ?? 0),
    outboundExactBalance: isOn(metadata.OUTBOUND_LISTENER_EXACT_BALANCE),
    inboundExactBalance: isOn(metadata.INBOUND_LISTENER_EXACT_BALANCE),
    serverSecrets: serverSecrets(metadata),
  };
}

/** The proxy sends its settings as its agent merged them; one that does not has those of the mesh. */
export const proxyConfigOf = derived((_: string, metadata: MeshProxy["metadata"], mesh: MeshConfig): ProxyDefaults => {
  const sent = metadata.PROXY_CONFIG;
  if (sent === undefined) return mesh.defaultConfig;
  return parse(proxyDefaultsSchema, sent, "").value ?? mesh.defaultConfig;
});

function ipModeOf(addresses: readonly string[]): IpMode {
  if (addresses.every((address) => isIPv4(address))) return "ipv4";
  return addresses.every((address) => isIPv6(address)) ? "ipv6" : "dual";
}
