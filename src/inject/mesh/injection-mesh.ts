/** The mesh config as injection needs it: as protobuf JSON, which is what templates print, with defaults in place. */

import type { Struct } from "@mizzen/go-template/value";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { messageValue } from "#config/mesh/message-value.ts";
import { DEFAULT_PROXY_CONFIG, type Layer, overlayProxyConfig } from "#config/proxy-config/proxy-config.ts";
import { isRecord } from "#lib/json/is-record.ts";

/** What injection reads of the mesh config. */
export interface InjectionMesh {
  /** `.MeshConfig` of templates. */
  readonly value: Struct;
  readonly defaultConfig: Layer;
  /** Where metrics of the agent are, unless a pod says otherwise. */
  readonly statusPort: number;
  readonly mergesMetrics: boolean;
  readonly rootNamespace: string;
  /** `localhost` or `passthrough`. */
  readonly inboundMode: string;
}

const DEFAULTS: Readonly<Record<string, unknown>> = {
  ...DEFAULT_MESH_CONFIG,
  connectTimeout: "10s",
  dnsRefreshRate: "60s",
  protocolDetectionTimeout: "0s",
  defaultConfig: DEFAULT_PROXY_CONFIG,
};

/** Reads a mesh config, given as data in either spelling of its fields, over the defaults. */
export function injectionMesh(given: unknown): InjectionMesh {
  const fields = isRecord(given) ? camelCased(given) : {};
  const proxy = isRecord(fields.defaultConfig) ? fields.defaultConfig : {};
  const defaultConfig = overlayProxyConfig({ ...DEFAULT_PROXY_CONFIG }, proxy, () => {});
  return meshOf({ ...DEFAULTS, ...fields }, defaultConfig);
}

/** The mesh with another configuration of proxies. */
export function withDefaultConfig(mesh: InjectionMesh, defaultConfig: Layer): InjectionMesh {
  const { json } = mesh.value.traits;
  return mesh.defaultConfig === defaultConfig ? mesh : meshOf(isRecord(json) ? json : {}, defaultConfig);
}

function meshOf(fields: Readonly<Record<string, unknown>>, defaultConfig: Layer): InjectionMesh {
  const json: Readonly<Record<string, unknown>> = { ...fields, defaultConfig };
  const { statusPort } = defaultConfig;
  const inbound = isRecord(json.inboundTrafficPolicy) ? json.inboundTrafficPolicy.mode : undefined;
  return {
    value: messageValue("MeshConfig", json),
    defaultConfig,
    statusPort: typeof statusPort === "number" ? statusPort : 0,
    mergesMetrics: json.enablePrometheusMerge !== false,
    rootNamespace: String(json.rootNamespace),
    inboundMode: inbound === "LOCALHOST" ? "localhost" : "passthrough",
  };
}

function camelCased(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()), value]),
  );
}
