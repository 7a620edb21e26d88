/** Which connections to a port are taken by which chain, by the port's protocol and what the workload accepts. */

import type { MtlsMode } from "../policies/peer-authentication.ts";
import { derived } from "../recipes/indexes.ts";

/** How the protocol of a port is known: declared to be HTTP or not, or to be found out. */
export type PortKind = "http" | "tcp" | "auto";

/** One way a connection may look, and how it is then treated. */
export interface InboundMatch {
  readonly applicationProtocols: readonly string[];
  readonly transportProtocol: "tls" | "raw_buffer";
  readonly treatedAs: "http" | "tcp";
  /** Whether the TLS is the mesh's own, and ends here. */
  readonly endsTls: boolean;
  /** The connection is taken to say no by name: the object that refuses it cannot be read. */
  readonly isRefused?: true;
}

/** A client's proxy that took the traffic for HTTP says so by these. */
const MESH_HTTP = ["istio-http/1.0", "istio-http/1.1", "istio-h2"];
/** One that did not know says one of these. */
const MESH_ANY = ["istio-peer-exchange", "istio"];
/** All that the mesh's own TLS is known by. */
export const MESH_ALL = ["istio", "istio-peer-exchange", ...MESH_HTTP];
/** What the HTTP inspector finds. */
const PLAIN_HTTP = ["http/1.1", "h2c"];

const plain = (treatedAs: "http" | "tcp", applicationProtocols: readonly string[] = []): InboundMatch => ({
  applicationProtocols,
  transportProtocol: "raw_buffer",
  treatedAs,
  endsTls: false,
});
const mutual = (treatedAs: "http" | "tcp", applicationProtocols: readonly string[] = []): InboundMatch => ({
  applicationProtocols,
  transportProtocol: "tls",
  treatedAs,
  endsTls: true,
});
/** TLS of the application itself, which is passed on as it is. */
const FOREIGN_TLS: InboundMatch = {
  applicationProtocols: [],
  transportProtocol: "tls",
  treatedAs: "tcp",
  endsTls: false,
};

/** TLS with certificates of the user's own, which ends here. */
export const ENDED_TLS = { http: mutual("http"), tcp: mutual("tcp") } as const;

const MATCHES: Readonly<Record<PortKind, Readonly<Record<MtlsMode, readonly InboundMatch[]>>>> = {
  http: {
    STRICT: [mutual("http")],
    PERMISSIVE: [mutual("http", MESH_ALL), plain("http")],
    DISABLE: [plain("http")],
  },
  tcp: {
    STRICT: [mutual("tcp")],
    PERMISSIVE: [mutual("tcp", MESH_ALL), FOREIGN_TLS, plain("tcp")],
    DISABLE: [plain("tcp")],
  },
  auto: {
    STRICT: [mutual("http", MESH_HTTP), mutual("tcp")],
    PERMISSIVE: [
      mutual("http", MESH_HTTP),
      plain("http", PLAIN_HTTP),
      mutual("tcp", MESH_ANY),
      plain("tcp"),
      FOREIGN_TLS,
    ],
    DISABLE: [plain("http", PLAIN_HTTP), plain("tcp")],
  },
};

/** Plain text where it is refused in the name of an object. Connections that are not HTTP find no chain. */
const REFUSED: Readonly<Record<PortKind, readonly InboundMatch[]>> = {
  http: [{ ...plain("http"), isRefused: true }],
  tcp: [],
  auto: [{ ...plain("http", PLAIN_HTTP), isRefused: true }],
};

/** The chains that refuse plain text to a port by name, beside those of STRICT. */
export function refusedMatches(kind: PortKind): readonly InboundMatch[] {
  return REFUSED[kind];
}

/** The chains of a port, in order. */
export function inboundMatches(kind: PortKind, mode: MtlsMode): readonly InboundMatch[] {
  return MATCHES[kind][mode];
}

/** The same with HTTP/1.0 among what is found to be HTTP. */
export const withHttp10 = derived((_: string, matches: readonly InboundMatch[]): readonly InboundMatch[] =>
  matches.map((match) =>
    inspectsHttp(match) ? { ...match, applicationProtocols: ["http/1.0", ...match.applicationProtocols] } : match,
  ),
);

/** Whether choosing the chain takes a look at the first bytes for TLS. */
export function inspectsTls({ transportProtocol }: InboundMatch): boolean {
  return transportProtocol === "tls";
}

/** Whether choosing the chain takes a look at the first bytes for HTTP. */
export function inspectsHttp({ applicationProtocols }: InboundMatch): boolean {
  return applicationProtocols.some((protocol) => PLAIN_HTTP.includes(protocol));
}
