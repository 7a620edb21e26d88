/** Who may call, and with what certificates: the parts of the control plane that need keys. */
import { type Authentication, authenticatorChain, type Credentials } from "#authn/authenticator.ts";
import { clientCertificateAuthenticator } from "#authn/client-certificate.ts";
import { jwtAuthenticator } from "#authn/jwt.ts";
import type { Authority } from "#ca/authority.ts";
import { ExpiryWarner } from "#ca/expiry.ts";
import { openAuthority, reloadAuthority } from "#ca/open-authority.ts";
import { rotateRoot } from "#ca/rotate-root.ts";
import { ServingCertificate } from "#ca/serving-certificate.ts";
import { servingNames } from "#ca/serving-names.ts";
import { TlsFiles } from "#ca/tls-files.ts";
import { trustAnchors } from "#ca/trust-anchors.ts";
import type { MeshConfig } from "#config/mesh-config.ts";
import type { Logger } from "#lib/log.ts";
import type { ServerIdentitySource } from "#lib/net/server-identity.ts";
import type { Background } from "./background.ts";
import type { DiscoveryConfig } from "./config.ts";

/** How often files of the operator are looked at. */
const FILE_INTERVAL_MS = 1_000;

export interface SecurityInput {
  readonly config: DiscoveryConfig;
  /** The mesh config in effect at any time. */
  readonly mesh: () => MeshConfig;
  readonly log: Logger;
  readonly now: () => number;
}

export type Authenticate = (credentials: Credentials) => Promise<Authentication>;

/** Client certificates first, as in Istio: they are the cheaper proof. */
export function authentication({ config, mesh, log, now }: SecurityInput): Authenticate {
  const trustDomain = () => mesh().trustDomain;
  const { jwtRule } = config;
  if (jwtRule === undefined) log.warn("JWT_RULE is not set: workloads without a certificate cannot prove who they are");
  return authenticatorChain([
    clientCertificateAuthenticator(() => [trustDomain(), ...mesh().trustDomainAliases]),
    ...(jwtRule === undefined ? [] : [jwtAuthenticator(jwtRule, { trustDomain, now })]),
  ]);
}

/** The certificate authority, if it is on; its files are followed, and its own root is replaced in time, in the background. */
export async function startCa(input: SecurityInput, background: Background): Promise<Authority | undefined> {
  const { config, mesh, now } = input;
  if (!config.ca.enabled) return undefined;
  const log = input.log.scope("ca");
  const furtherRoots = config.ca.multiRoot ? meshAnchors(mesh, log) : () => [];
  const settings = { ...config.ca, trustDomain: mesh().trustDomain, log, now, furtherRoots };
  const authority = await openAuthority(settings);
  reloadAuthority({ ...settings, authority, intervalMs: FILE_INTERVAL_MS }, background.signal);
  background.run(rotateRoot({ ...settings, authority }, background.signal));
  background.run(new ExpiryWarner({ authority, log, now }).run(background.signal));
  return authority;
}

/** `caCertificates` of the mesh config in effect; what is wrong with them is said once. */
function meshAnchors(mesh: () => MeshConfig, log: Logger): () => readonly string[] {
  let seen: MeshConfig["caCertificates"];
  let anchors: readonly string[] = [];
  return () => {
    const { caCertificates } = mesh();
    if (caCertificates === seen) return anchors;
    seen = caCertificates;
    const read = trustAnchors(caCertificates ?? []);
    for (const reason of read.problems) log.warn("a trust anchor of the mesh config is not used", { reason });
    anchors = read.anchors;
    return anchors;
  };
}

/** What the TLS listener shows: the operator's files, else a certificate of the CA, else there is none. */
export async function startServerIdentity(
  input: SecurityInput,
  authority: Authority | undefined,
  background: Background,
): Promise<ServerIdentitySource | undefined> {
  const { config, mesh, now } = input;
  const log = input.log.scope("ca");
  if (config.tlsFiles !== undefined) {
    const files = await TlsFiles.read({ ...config.tlsFiles, log, intervalMs: FILE_INTERVAL_MS });
    files.watch(background.signal);
    return files;
  }
  if (authority === undefined) return undefined;
  const { namespace, revision, customHosts, features } = config;
  const discoveryHost = hostOf(mesh().defaultConfig.discoveryAddress ?? "");
  const names = servingNames({ namespace, revision, customHosts, domain: features.domain, discoveryHost });
  const certificate = await ServingCertificate.issue({ authority, names, log, now });
  background.run(certificate.run(background.signal));
  return certificate;
}

/** `host` of `host:port`, without the brackets of IPv6. */
function hostOf(address: string): string {
  return address.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1");
}
