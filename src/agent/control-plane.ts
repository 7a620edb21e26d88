/** Connections to the control plane: its certificate authority and its configuration streams. */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { GrpcConnection } from "#lib/grpc/client.ts";
import { type ClientTls, connectGrpc } from "#lib/grpc/connect.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { isBinaryHeader } from "#lib/text/header-value.ts";
import { certificateIn, checkKey } from "./key-pair.ts";
import { noCertificate, readRootFile } from "./root-file.ts";
import type { FetchToken } from "./sts/token-source.ts";

/** How a server of the control plane is reached and recognised. */
export interface ControlPlaneServer {
  /** `host:port` */
  readonly address: string;
  /** `undefined` speaks plain text; `system` trusts what the machine trusts; else a PEM file, read for each connection. */
  readonly rootCertificate: string | "system" | undefined;
  /** URL of the proxy through which it is reached; undefined goes there directly. */
  readonly proxy?: string | undefined;
  /** ISTIOD_SAN: the name its certificate must carry, when that is not the host of the address. */
  readonly subjectAltName: string;
  /** Sent with each call, such as `clusterid`. */
  readonly headers: Readonly<Record<string, string>>;
  /** PEM files, read for each connection, by which the server knows us beside or in place of a token. */
  readonly clientCertificate?: { readonly certificate: string; readonly key: string } | undefined;
  /** Told why that certificate is not shown. */
  readonly warn?: ((reason: string) => void) | undefined;
  /** GRPC_KEEPALIVE_INTERVAL and GRPC_KEEPALIVE_TIMEOUT, in place of 30 and 10 seconds. */
  readonly keepalive?: { readonly intervalMs: number; readonly timeoutMs: number } | undefined;
}

/** A server, and the token by which it knows whose calls these are. */
export interface ControlPlaneOptions extends ControlPlaneServer {
  /** Asked for each call. Rejects when there must be a token and cannot be had. */
  readonly fetchToken: FetchToken;
}

/** Cost a push of many megabytes no stalls, and no memory while nothing is sent. */
const FLOW_CONTROL_WINDOW_BYTES = 1024 * 1024;
const KEEPALIVE_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 10_000;
/** Of a development set-up, where the control plane is reached by a forwarded port. */
const NAME_BEHIND_LOCALHOST = "istiod.istio-system.svc";

const WHOSE_ROOTS = "the control plane";

/** A connection. Rejects when a certificate cannot be read, or when there is no connection before the signal is aborted. */
export async function connectControlPlane(
  options: ControlPlaneServer,
  signal: AbortSignal,
  tls = clientTls(options),
): Promise<GrpcConnection> {
  const { address, proxy, keepalive = { intervalMs: KEEPALIVE_MS, timeoutMs: KEEPALIVE_TIMEOUT_MS } } = options;
  return connectGrpc({ address, proxy, tls, keepalive, windowBytes: FLOW_CONTROL_WINDOW_BYTES }, signal);
}

/** What a connection begins with, read anew; undefined speaks plain text. Throws when a certificate cannot be read. */
export function clientTls(options: ControlPlaneServer): ClientTls | undefined {
  const { rootCertificate } = options;
  if (rootCertificate === undefined) return undefined;
  return {
    serverName: serverName(options),
    roots: rootCertificate === "system" ? undefined : { pem: readRoots(rootCertificate), from: rootCertificate },
    client: clientIdentity(options),
  };
}

/**
 * What authenticates a call, as headers: the token, if there is one, and those of all calls. In small letters: whoever
 * configures `Authorization` means the same header, which a call has once.
 */
export async function callHeaders({ headers, fetchToken }: ControlPlaneOptions): Promise<Record<string, string>> {
  const token = await fetchToken();
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), headerText(name, value)]);
  return { ...Object.fromEntries(given), ...(token !== "" && { authorization: `Bearer ${token}` }) };
}

/** gRPC sends bytes in base64. */
function headerText(name: string, value: string): string {
  return isBinaryHeader(name) ? Buffer.from(value).toString("base64").replaceAll("=", "") : value;
}

function serverName({ address, subjectAltName }: ControlPlaneServer): string {
  if (subjectAltName !== "") return subjectAltName;
  const host = address.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return host.includes("localhost") ? NAME_BEHIND_LOCALHOST : host;
}

/**
 * What to show the server. On a virtual machine that starts for the first time there is a token and no certificate yet;
 * one that has expired would only end the connection, where the token may still do.
 */
function clientIdentity({ clientCertificate: files, warn }: ControlPlaneServer): ClientTls["client"] {
  if (files === undefined) return undefined;
  let certificate: Buffer;
  let leaf: X509Certificate;
  try {
    certificate = readFileSync(files.certificate);
    leaf = certificateIn({ file: files.certificate, pem: certificate });
    if (Date.parse(leaf.validTo) < Date.now()) throw new Error(`${files.certificate} has expired`);
  } catch (thrown) {
    warn?.(`no certificate to show the control plane, using token instead: ${errorText(thrown)}`);
    return undefined;
  }
  try {
    const key = readFileSync(files.key);
    checkKey({ file: files.key, pem: key }, { file: files.certificate, leaf });
    return { key, certificate };
  } catch (cause) {
    throw new MeshError(
      "CLIENT_CERTIFICATE_UNREADABLE",
      "Cannot read the key of the certificate to show the control plane",
      { cause },
    );
  }
}

/** Only such as can be used: the first that cannot would keep those behind it from being read. */
function readRoots(file: string): Buffer {
  const roots = readRootFile(WHOSE_ROOTS, file).filter(isCertificate);
  if (roots.length === 0) throw noCertificate(WHOSE_ROOTS, file);
  return Buffer.from(roots.join("\n"));
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem);
    return true;
  } catch {
    return false; // As Go does, what is no certificate is passed over.
  }
}
