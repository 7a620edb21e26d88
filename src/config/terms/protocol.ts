/** Protocol of a port as declared; `Unsupported` means undeclared, which Envoy then detects from the first bytes. */
export type Protocol =
  | "HTTP"
  | "HTTP2"
  | "GRPC"
  | "GRPC-Web"
  | "HTTP_PROXY"
  | "HTTPS"
  | "TLS"
  | "TCP"
  | "Mongo"
  | "MySQL"
  | "Redis"
  | "UDP"
  | "Unsupported";

const PROTOCOLS: readonly Protocol[] = [
  "HTTP",
  "HTTP2",
  "GRPC",
  "GRPC-Web",
  "HTTP_PROXY",
  "HTTPS",
  "TLS",
  "TCP",
  "Mongo",
  "MySQL",
  "Redis",
  "UDP",
];
const BY_NAME: ReadonlyMap<string, Protocol> = new Map(PROTOCOLS.map((protocol) => [protocol.toLowerCase(), protocol]));

/** Names a user may give to a protocol, in any case. */
export const PROTOCOL_NAMES: readonly string[] = PROTOCOLS;

/** Reads the name of a protocol in any case. */
export function parseProtocol(name: string): Protocol {
  return BY_NAME.get(name.toLowerCase()) ?? "Unsupported";
}

/** Declared to be some HTTP. */
export function isHttp(protocol: Protocol): boolean {
  return protocol === "HTTP" || protocol === "HTTP_PROXY" || isHttp2(protocol);
}

/** HTTP/2 towards the upstream by declaration. */
export function isHttp2(protocol: Protocol): boolean {
  return protocol === "HTTP2" || protocol === "GRPC" || protocol === "GRPC-Web";
}

/** Starts with a TLS handshake that the proxy sees. */
export function isTls(protocol: Protocol): boolean {
  return protocol === "HTTPS" || protocol === "TLS";
}

/** Declared to be a stream of bytes, TLS included. */
export function isTcp(protocol: Protocol): boolean {
  return isTls(protocol) || protocol === "TCP" || protocol === "Mongo" || protocol === "Redis" || protocol === "MySQL";
}
