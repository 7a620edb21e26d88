/** Type URLs of the resources that travel over aggregated discovery. */

const PREFIX = "type.googleapis.com/";

export const CLUSTER_TYPE = `${PREFIX}envoy.config.cluster.v3.Cluster`;
export const ENDPOINT_TYPE = `${PREFIX}envoy.config.endpoint.v3.ClusterLoadAssignment`;
export const LISTENER_TYPE = `${PREFIX}envoy.config.listener.v3.Listener`;
export const ROUTE_TYPE = `${PREFIX}envoy.config.route.v3.RouteConfiguration`;
export const SECRET_TYPE = `${PREFIX}envoy.extensions.transport_sockets.tls.v3.Secret`;
export const EXTENSION_TYPE = `${PREFIX}envoy.config.core.v3.TypedExtensionConfig`;
/** The names an agent's DNS server answers from. */
export const NAME_TABLE_TYPE = `${PREFIX}istio.networking.nds.v1.NameTable`;
/** The bootstrap-time settings an agent may ask for at run time. */
export const PROXY_CONFIG_TYPE = `${PREFIX}istio.mesh.v1alpha1.ProxyConfig`;

/** A request of this type tells how a workload is; it asks for nothing. */
export const HEALTH_TYPE = `${PREFIX}istio.v1.HealthInformation`;

/** A request of this type, or of one of its pages behind a slash, asks for what the control plane's debug pages say. */
export const DEBUG_TYPE = "istio.io/debug";

/**
 * Types of which a proxy may ask for everything there is. Of the others it asks by name only, since the names come from
 * the resources of these.
 */
export const WILDCARD_TYPES: ReadonlySet<string> = new Set([
  CLUSTER_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  PROXY_CONFIG_TYPE,
]);

const SHORT_NAMES: ReadonlyMap<string, string> = new Map([
  [CLUSTER_TYPE, "cds"],
  [ENDPOINT_TYPE, "eds"],
  [LISTENER_TYPE, "lds"],
  [ROUTE_TYPE, "rds"],
  [SECRET_TYPE, "sds"],
  [EXTENSION_TYPE, "ecds"],
  [NAME_TABLE_TYPE, "nds"],
  [PROXY_CONFIG_TYPE, "pcds"],
]);

const KNOWN: ReadonlyMap<string, string> = new Map([...SHORT_NAMES.keys(), HEALTH_TYPE].map((type) => [type, type]));

/** The same text; one object for all who speak of a type, which is compared at a glance. */
export function sharedTypeUrl(typeUrl: string): string {
  return KNOWN.get(typeUrl) ?? typeUrl;
}

/** The type of a short name, in small or capital letters; any other text stands for itself. */
export function typeUrlNamed(name: string): string {
  const [typeUrl] = [...SHORT_NAMES].find(([, short]) => short === name.toLowerCase()) ?? [name];
  return typeUrl;
}

/** `cds`, `eds`, ... for metrics and logs; `other` for what has no such name, since anybody can make up a type. */
export function shortTypeName(typeUrl: string): string {
  return SHORT_NAMES.get(typeUrl) ?? "other";
}
