/** Labels and annotations that injection reads and writes. */

/** Label and annotation: whether a pod is injected. */
export const INJECT = "sidecar.istio.io/inject";
/** Annotation: what was injected, by name. */
export const STATUS = "sidecar.istio.io/status";
/** Annotation: containers of the user, kept for another injection. */
export const OVERRIDES = "proxy.istio.io/overrides";
/** Annotation: configuration of the pod's proxy. */
export const PROXY_CONFIG = "proxy.istio.io/config";
/** Annotation: the templates that a pod asks for. */
export const TEMPLATES = "inject.istio.io/templates";
/** Annotation: whether the proxy is an init container that stays. */
export const NATIVE_SIDECAR = "sidecar.istio.io/nativeSidecar";
/** Annotation: the variant of the proxy's image. */
export const IMAGE_TYPE = "sidecar.istio.io/proxyImageType";
/** Annotation: how traffic gets to the proxy. */
export const INTERCEPTION_MODE = "sidecar.istio.io/interceptionMode";
/** Annotation: whether probes are turned to the agent. */
export const REWRITE_PROBES = "sidecar.istio.io/rewriteAppHTTPProbers";
/** Annotation: the port of the agent. */
export const STATUS_PORT = "status.sidecar.istio.io/port";
/** Annotation: whether metrics are merged. */
export const MERGE_METRICS = "prometheus.istio.io/merge-metrics";
/** Label: the revision of the control plane. */
export const REVISION = "istio.io/rev";
