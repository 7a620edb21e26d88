/** Makes and reads every Envoy resource name. Names are Istio's: tools, logs and dashboards depend on them. */

/** The parts of `outbound|8000|v1|httpbin.default.svc.cluster.local`, in whichever of its forms. */
export interface ClusterName {
  readonly direction: "outbound" | "inbound";
  readonly port: number;
  /** Empty for the service as a whole. */
  readonly subset: string;
  /** Empty for inbound clusters. */
  readonly hostname: string;
  /** Written as a server name: `outbound_.8000_.v1_.httpbin.default.svc.cluster.local`. */
  readonly isServerName: boolean;
}

/** `undefined` for names that are no service's, such as `PassthroughCluster`. */
export function parseClusterName(name: string): ClusterName | undefined {
  const isServerName = /^(in|out)bound_\./.test(name);
  const [direction, port, subset, hostname, ...rest] = name.split(isServerName ? "_." : "|");
  if (direction !== "outbound" && direction !== "inbound") return undefined;
  if (port === undefined || subset === undefined || hostname === undefined || rest.length > 0) return undefined;
  if (!/^\d+$/.test(port)) return undefined;
  return { direction, port: Number(port), subset, hostname, isServerName };
}

/** The cluster of a service port as clients see it. */
export function outboundCluster(hostname: string, port: number, subset = ""): string {
  return `outbound|${port}|${subset}|${hostname}`;
}

/** The cluster of a port of the workload itself. */
export function inboundCluster(port: number): string {
  return `inbound|${port}||`;
}

/**
 * What the client's proxy asks for in the TLS handshake: a cluster name in letters that a server name may have. Also the name
 * of the cluster to which gateways pass such connections on.
 */
export function outboundServerName(hostname: string, port: number, subset = ""): string {
  return `outbound_.${port}_.${subset}_.${hostname}`;
}

/** Where traffic to unknown destinations goes when it is not allowed. */
export const BLACK_HOLE_CLUSTER = "BlackHoleCluster";
/** Where traffic to unknown destinations goes when it is allowed. */
export const PASSTHROUGH_CLUSTER = "PassthroughCluster";
/** Where traffic to ports of the workload that no service names goes. */
export const INBOUND_PASSTHROUGH_CLUSTER = "InboundPassthroughCluster";

/** The listener that receives all captured outgoing connections. */
export const VIRTUAL_OUTBOUND = "virtualOutbound";
/** The listener that receives all captured incoming connections. */
export const VIRTUAL_INBOUND = "virtualInbound";
/** The chain for incoming HTTP on ports that no service names. */
export const VIRTUAL_INBOUND_CATCH_ALL_HTTP = "virtualInbound-catchall-http";
/** The chain that stops connections made to the inbound port itself. */
export const VIRTUAL_INBOUND_BLACK_HOLE = "virtualInbound-blackhole";
/** The chain that stops connections made to the outbound port itself. */
export const VIRTUAL_OUTBOUND_BLACK_HOLE = "virtualOutbound-blackhole";
/** The chain for outgoing connections to no known service. */
export const VIRTUAL_OUTBOUND_CATCH_ALL = "virtualOutbound-catchall-tcp";
/** The chain for what is no HTTP on a port of HTTP services. */
export const PASSTHROUGH_FILTER_CHAIN = "PassthroughFilterChain";

/** `0.0.0.0_8000` */
export function listenerName(address: string, port: number): string {
  return `${address}_${port}`;
}

/** `udp_0.0.0.0_443` */
export function udpListenerName(address: string, port: number): string {
  return `udp_${listenerName(address, port)}`;
}

/** Statistics of a listener or cluster: the `;` ends the name for the rules that cut it out of a statistic's name. */
export function statPrefix(name: string): string {
  return `${name};`;
}

/** The routes of all HTTP services on a port. */
export function sharedRouteName(port: number): string {
  return String(port);
}

/** The routes of the listener that applications use as an HTTP proxy. */
export const HTTP_PROXY_ROUTES = "http_proxy";

/** The routes of one service whose protocol is detected, on its own address. */
export function ownRouteName(hostname: string, port: number): string {
  return `${hostname}:${port}`;
}

/** The routes of the plain HTTP servers of a gateway on a port. */
export function gatewayRouteName(port: number, bind: string): string {
  return bind === "" ? `http.${port}` : `http.${port}.${bind}`;
}

/** What the routes of an HTTPS server of a gateway are called after. */
export interface GatewayServerName {
  readonly port: number;
  readonly portName: string;
  readonly gateway: string;
  readonly namespace: string;
  readonly bind: string;
}

/** The routes of one HTTPS server of a gateway. */
export function gatewayServerRouteName(server: GatewayServerName): string {
  const name = `https.${server.port}.${server.portName}.${server.gateway}.${server.namespace}`;
  return server.bind === "" ? name : `${name}.${server.bind}`;
}

/** What the name of a gateway's routes tells: port 0 and empty texts where it tells nothing. */
export function parseGatewayRouteName(name: string): {
  readonly port: number;
  readonly portName: string;
  /** `namespace/name` */
  readonly gateway: string;
} {
  const [scheme, port = "", portName = "", gateway = "", namespace = "", ...rest] = name.split(".");
  const isNumber = /^\d+$/.test(port);
  if (scheme === "http") return { port: isNumber && portName === "" ? Number(port) : 0, portName: "", gateway: "" };
  if (scheme !== "https" || namespace === "" || rest.length > 0) return { port: 0, portName: "", gateway: "" };
  return { port: isNumber ? Number(port) : 0, portName, gateway: `${namespace}/${gateway}` };
}

/** `reviews.default.svc.cluster.local:9080`; IPv6 addresses are put in brackets. */
export function virtualHostName(hostname: string, port: number): string {
  return `${hostInUrl(hostname)}:${port}`;
}

/** IPv6 addresses in brackets, as in a URL or a `Host` header. */
export function hostInUrl(hostname: string): string {
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}

/** Virtual host and route for hosts that no service has, when they are allowed. */
export const ALLOW_ANY = "allow_any";
/** Virtual host and route for hosts that no service has, when they are not allowed. */
export const BLOCK_ALL = "block_all";

/** What a request to a service is called in traces: `httpbin.default.svc.cluster.local:8000/*`. */
export function traceOperation(hostname: string, port: number, path = "/*"): string {
  return `${hostname}:${port}${path}`;
}

/** Where an object of the user's API came from, as written into the metadata of what was made from it. */
export function configPath(
  group: string,
  kind: string,
  object: { readonly namespace: string; readonly name: string },
): string {
  const kebab = kind.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `-${letter}`).toLowerCase();
  return `/apis/${group}/v1/namespaces/${object.namespace}/${kebab}/${object.name}`;
}
