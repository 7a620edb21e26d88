/** The mesh config in effect: what the user wrote, over Istio's defaults. */
import { readDocument } from "#lib/yaml/read.ts";
import { parse } from "../schema/parse.ts";
import type { Parsed } from "../schema/problem.ts";
import { checkMeshConfig } from "./check-mesh-config.ts";
import type { ExtensionProvider } from "./extension-provider.ts";
import type { MeshNetworks } from "./mesh-networks.ts";
import { type MeshConfigFields, meshConfigSchema } from "./mesh-schema.ts";
import type { ProxyDefaults } from "./proxy-defaults.ts";

const DEFAULT_PROXY = {
  configPath: "./etc/istio/proxy",
  binaryPath: "/usr/local/bin/envoy",
  serviceCluster: "istio-proxy",
  drainDuration: 45_000,
  terminationDrainDuration: 5_000,
  proxyAdminPort: 15000,
  controlPlaneAuthPolicy: "MUTUAL_TLS",
  discoveryAddress: "istiod.istio-system.svc:15012",
  statNameLength: 189,
  statusPort: 15020,
} as const satisfies ProxyDefaults;

const DEFAULTS = {
  enableTracing: true,
  accessLogFile: "",
  accessLogEncoding: "TEXT",
  accessLogFormat: "",
  enableEnvoyAccessLogService: false,
  protocolDetectionTimeout: 0,
  ingressService: "istio-ingressgateway",
  ingressControllerMode: "STRICT",
  ingressClass: "istio",
  trustDomain: "cluster.local",
  trustDomainAliases: [],
  enableAutoMtls: true,
  outboundTrafficPolicy: { mode: "ALLOW_ANY" },
  inboundTrafficPolicy: { mode: "PASSTHROUGH" },
  localityLbSetting: { enabled: true },
  defaultConfig: DEFAULT_PROXY,
  rootNamespace: "istio-system",
  proxyListenPort: 15001,
  proxyInboundListenPort: 15006,
  connectTimeout: 10_000,
  defaultServiceExportTo: ["*"],
  defaultVirtualServiceExportTo: ["*"],
  defaultDestinationRuleExportTo: ["*"],
  dnsRefreshRate: 60_000,
  enablePrometheusMerge: true,
  defaultProviders: {},
  extensionProviders: [
    { name: "prometheus", prometheus: {} },
    { name: "stackdriver", stackdriver: {} },
    { name: "envoy", envoyFileAccessLog: { path: "/dev/stdout" } },
  ],
} as const satisfies MeshConfigFields;

type Defaulted = keyof typeof DEFAULTS;

/** The mesh config in effect: fields that have a default are always set. */
export type MeshConfig = Omit<MeshConfigFields, Defaulted> & {
  readonly [Name in Defaulted]-?: Exclude<MeshConfigFields[Name], undefined>;
} & {
  /** The networks of the mesh, which are written beside the mesh config; one network when unset. */
  readonly networks?: MeshNetworks;
};

/** What holds where the user says nothing. */
export const DEFAULT_MESH_CONFIG: MeshConfig = DEFAULTS;

/** Reads a mesh config file over Istio's defaults. */
export function parseMeshConfig(text: string): Parsed<MeshConfig> {
  const document = readDocument(text);
  if (document.error !== undefined) {
    return { value: undefined, problems: [{ field: "", message: document.error.message, severity: "error" }] };
  }
  return meshConfigOf(document.value);
}

/** As `parseMeshConfig`, for a config that is already data, over one that is in effect; null and undefined are an empty one. */
export function meshConfigOf(raw: unknown, base: MeshConfig = DEFAULTS): Parsed<MeshConfig> {
  const given = parse(meshConfigSchema, raw ?? {}, "");
  if (given.value === undefined) return { value: undefined, problems: given.problems };
  const problems = [...given.problems, ...checkMeshConfig(given.value)];
  const refused = problems.some(({ severity }) => severity === "error");
  return { value: refused ? undefined : over(base, given.value), problems };
}

/** Fields replace those of the base as a whole, except the proxy settings, the providers and the trust domain aliases. */
function over(base: MeshConfig, given: MeshConfigFields): MeshConfig {
  return {
    ...base,
    ...withoutUnset(given),
    defaultConfig: proxyOver(base.defaultConfig, given.defaultConfig ?? {}),
    defaultProviders: { ...base.defaultProviders, ...given.defaultProviders },
    extensionProviders: mergeProviders(base.extensionProviders, given.extensionProviders ?? []),
    localityLbSetting: withoutEmptyLists(given.localityLbSetting ?? base.localityLbSetting),
    trustDomainAliases: [...new Set([...base.trustDomainAliases, ...(given.trustDomainAliases ?? [])])].sort(),
  };
}

/** Shares or fallbacks of which there are none do not keep the others from having effect. */
function withoutEmptyLists(setting: MeshConfig["localityLbSetting"]): MeshConfig["localityLbSetting"] {
  return Object.fromEntries(Object.entries(setting).filter(([, value]) => !Array.isArray(value) || value.length > 0));
}

/** Parsing leaves unset fields out; this only tells the compiler so. */
function withoutUnset<T extends object>(given: T): { readonly [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return given as { readonly [Name in keyof T]?: Exclude<T[Name], undefined> };
}

function proxyOver(base: ProxyDefaults, given: ProxyDefaults): ProxyDefaults {
  if (given.tracingServiceName === undefined) return { ...base, ...given };
  const { serviceCluster: _, ...rest } = base;
  return { ...rest, ...given };
}

function mergeProviders(
  defaults: readonly ExtensionProvider[],
  given: readonly ExtensionProvider[],
): readonly ExtensionProvider[] {
  const byName = new Map([...defaults, ...given].map((provider) => [provider.name, provider]));
  return [...byName.values()];
}
