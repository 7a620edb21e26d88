/** Connections to the control plane: its certificate authority and its configuration streams. */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type ChannelOptions, Client, credentials, Metadata } from "@grpc/grpc-js";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";

/** How a server of the control plane is reached and recognised. */
export interface ControlPlaneOptions {
  /** `host:port` */
  readonly address: string;
  /** `undefined` speaks plain text; `system` trusts what the machine trusts; else a PEM file, read for each connection. */
  readonly rootCertificate: string | "system" | undefined;
  /** ISTIOD_SAN: the name its certificate must carry, when that is not the host of the address. */
  readonly subjectAltName: string;
  /** Sent with each call, such as `clusterid`. */
  readonly headers: Readonly<Record<string, string>>;
  /** File with the token of the service account, read for each call because it rotates; empty for none. */
  readonly tokenFile: string;
  /** Gets a token in place of reading the file; rejects when there must be one and cannot be had. Empty for none. */
  readonly fetchToken?: (() => Promise<string>) | undefined;
  /** PEM files, read for each connection, by which the server knows us in place of a token. */
  readonly clientCertificate?: { readonly certificate: string; readonly key: string } | undefined;
  /** GRPC_KEEPALIVE_INTERVAL and GRPC_KEEPALIVE_TIMEOUT, in place of 30 and 10 seconds. */
  readonly keepalive?: { readonly intervalMs: number; readonly timeoutMs: number } | undefined;
}

/** Cost a push of many megabytes no stalls, and no memory while nothing is sent. */
const FLOW_CONTROL_WINDOW_BYTES = 1024 * 1024;
const KEEPALIVE_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 10_000;
const RECONNECT_MS = 500;
const MAX_RECONNECT_MS = 5_000;

/** Of a development set-up, where the control plane is reached by a forwarded port. */
const NAME_BEHIND_LOCALHOST = "istiod.istio-system.svc";

/** A client with a connection of its own. Rejects when a certificate cannot be read. */
export async function connectControlPlane(options: ControlPlaneOptions): Promise<Client> {
  const channelOptions: ChannelOptions = {
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
    "grpc-node.flow_control_window": FLOW_CONTROL_WINDOW_BYTES,
    "grpc.keepalive_time_ms": options.keepalive?.intervalMs ?? KEEPALIVE_MS,
    "grpc.keepalive_timeout_ms": options.keepalive?.timeoutMs ?? KEEPALIVE_TIMEOUT_MS,
    "grpc.initial_reconnect_backoff_ms": RECONNECT_MS,
    "grpc.max_reconnect_backoff_ms": MAX_RECONNECT_MS,
    "grpc.use_local_subchannel_pool": 1,
    "grpc.service_config_disable_resolution": 1,
    "grpc.enable_http_proxy": 0,
    "grpc.enable_channelz": 0,
    "grpc.enable_retries": 0,
    "grpc.ssl_target_name_override": serverName(options),
  };
  if (options.rootCertificate === undefined)
    return new Client(options.address, credentials.createInsecure(), channelOptions);
  const roots = options.rootCertificate === "system" ? null : await readRoots(options.rootCertificate);
  const { key, certificate } = await readClientCertificate(options.clientCertificate);
  return new Client(options.address, credentials.createSsl(roots, key, certificate), channelOptions);
}

/** What authenticates a call: the token, if there is one, and the headers. */
export async function callMetadata(options: ControlPlaneOptions, log: Logger): Promise<Metadata> {
  const { headers, tokenFile, fetchToken = () => readToken(tokenFile, log) } = options;
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  const token = await fetchToken();
  if (token !== "") metadata.set("authorization", `Bearer ${token}`);
  return metadata;
}

async function readToken(file: string, log: Logger): Promise<string> {
  if (file === "") return "";
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (thrown) {
    // Without a token the control plane may still know the caller by other means.
    log.warn(`There is no service account token: ${errorText(thrown)}`);
    return "";
  }
}

function serverName({ address, subjectAltName }: ControlPlaneOptions): string {
  if (subjectAltName !== "") return subjectAltName;
  const host = address.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return host.includes("localhost") ? NAME_BEHIND_LOCALHOST : host;
}

const NO_CERTIFICATE = { key: null, certificate: null };

async function readClientCertificate(
  files: ControlPlaneOptions["clientCertificate"],
): Promise<{ readonly key: Buffer | null; readonly certificate: Buffer | null }> {
  if (files === undefined) return NO_CERTIFICATE;
  try {
    const certificate = await readFile(files.certificate);
    // One that has expired would only end the connection; the token may still do.
    if (Date.parse(new X509Certificate(certificate).validTo) < Date.now()) return NO_CERTIFICATE;
    return { key: await readFile(files.key), certificate };
  } catch (cause) {
    throw new MeshError("CLIENT_CERTIFICATE_UNREADABLE", "Cannot read the certificate to show the control plane", {
      cause,
    });
  }
}

async function readRoots(file: string): Promise<Buffer> {
  let roots: Buffer;
  try {
    roots = await readFile(file);
  } catch (cause) {
    throw new MeshError("ROOT_CERTIFICATE_UNREADABLE", `Cannot read the control plane's root certificate`, { cause });
  }
  if (roots.includes("-----BEGIN CERTIFICATE-----")) return roots;
  throw new MeshError("ROOT_CERTIFICATE_UNREADABLE", `${file} holds no certificate in PEM form`);
}
