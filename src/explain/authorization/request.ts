/** A request, or a connection, as the proxy of the workload that is called sees it. */

/** Claims of a token that was checked. */
export type Claims = Readonly<Record<string, unknown>>;

/** What any connection shows. */
interface Connection {
  /** The SPIFFE id that the caller's certificate proves; undefined without mutual TLS. */
  readonly peer: string | undefined;
  /** The address the connection comes from. */
  readonly sourceIp: string;
  /** The address of the original client, by `X-Forwarded-For` or the PROXY protocol as far as these are believed. */
  readonly remoteIp: string;
  readonly destinationIp: string;
  /** The port of the workload, not that of a service. */
  readonly port: number;
  /** The server name that was asked for by TLS; empty for none. */
  readonly sni: string;
}

/** A connection of which nothing else is known. */
export interface TcpRequest extends Connection {
  readonly protocol: "tcp";
}

/** A request over HTTP. */
export interface HttpRequest extends Connection {
  readonly protocol: "http";
  readonly method: string;
  /** As normalised by the proxy, perhaps with a query. */
  readonly path: string;
  /** With its port, if the client sends one. */
  readonly host: string;
  /** Values by lower-case name, in order. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  /** Undefined without a token, or when nobody looks at it. */
  readonly claims: Claims | undefined;
}

export type Request = HttpRequest | TcpRequest;
