import { join } from "node:path";
import type { ProxyConfig } from "#config/proxy-config/proxy-config.ts";
import type { EnvValues } from "#lib/env/env-table.ts";
import type { AGENT_ENVIRONMENT } from "../agent-environment.ts";

/** What the environment says of the streams to the control plane and of what comes over them. */
export interface XdsConfig {
  /** PROXY_CONFIG_XDS_AGENT: ask for ProxyConfig, whose roots are added to those of the CA. */
  readonly dynamicProxyConfig: boolean;
  /** PROXY_XDS_DEBUG_VIA_AGENT and its port; undefined without. */
  readonly debugPort: number | undefined;
  readonly keepalive: { readonly intervalMs: number; readonly timeoutMs: number };
  /** Of Envoy's requests: ISTIO_GPRC_MAXRECVMSGSIZE and ISTIO_GPRC_MAXSTREAMS. */
  readonly limits: { readonly maxRequestBytes: number; readonly maxStreams: number };
  /** Undefined when modules are Envoy's own business. */
  readonly wasm: WasmConfig | undefined;
}

export interface WasmConfig {
  readonly insecureHosts: readonly string[];
  readonly allowLocal: boolean;
  readonly allowedRanges: readonly string[];
  readonly expiryMs: number;
  readonly purgeEveryMs: number;
  readonly httpTimeoutMs: number;
  readonly httpAttempts: number;
  readonly dockerConfigFolder: string;
}

export function xdsConfig(values: EnvValues<typeof AGENT_ENVIRONMENT>): XdsConfig {
  return {
    dynamicProxyConfig: values.PROXY_CONFIG_XDS_AGENT,
    debugPort: values.PROXY_XDS_DEBUG_VIA_AGENT ? values.PROXY_XDS_DEBUG_VIA_AGENT_PORT : undefined,
    keepalive: { intervalMs: values.GRPC_KEEPALIVE_INTERVAL, timeoutMs: values.GRPC_KEEPALIVE_TIMEOUT },
    limits: { maxRequestBytes: values.ISTIO_GPRC_MAXRECVMSGSIZE, maxStreams: values.ISTIO_GPRC_MAXSTREAMS },
    wasm: values.ISTIO_AGENT_ENABLE_WASM_REMOTE_LOAD_CONVERSION ? wasmConfig(values) : undefined,
  };
}

/** In the folder of the proxy's configuration. */
export function xdsSocketPath({ configPath }: Pick<ProxyConfig, "configPath">): string {
  return join(configPath, "XDS");
}

function wasmConfig(values: EnvValues<typeof AGENT_ENVIRONMENT>): WasmConfig {
  return {
    insecureHosts: values.WASM_INSECURE_REGISTRIES,
    allowLocal: values.WASM_ALLOW_LOCAL_SERVERS,
    allowedRanges: values.ALLOWED_CIDRS_IN_WASM_FETCH,
    expiryMs: values.WASM_MODULE_EXPIRY,
    purgeEveryMs: values.WASM_PURGE_INTERVAL,
    httpTimeoutMs: values.WASM_HTTP_REQUEST_TIMEOUT,
    httpAttempts: values.WASM_HTTP_REQUEST_MAX_RETRIES,
    dockerConfigFolder: values.DOCKER_CONFIG || `${values.HOME}/.docker`,
  };
}
