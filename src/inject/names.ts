/** Labels and annotations that injection reads and writes. */
export const INJECT = "sidecar.istio.io/inject";
export const STATUS = "sidecar.istio.io/status";
export const OVERRIDES = "proxy.istio.io/overrides";
export const PROXY_CONFIG = "proxy.istio.io/config";
export const TEMPLATES = "inject.istio.io/templates";
export const NATIVE_SIDECAR = "sidecar.istio.io/nativeSidecar";
export const IMAGE_TYPE = "sidecar.istio.io/proxyImageType";
export const INTERCEPTION_MODE = "sidecar.istio.io/interceptionMode";
export const REWRITE_PROBES = "sidecar.istio.io/rewriteAppHTTPProbers";
export const STATUS_PORT = "status.sidecar.istio.io/port";
export const MERGE_METRICS = "prometheus.istio.io/merge-metrics";
export const NETWORK = "topology.istio.io/network";
export const REVISION = "istio.io/rev";
