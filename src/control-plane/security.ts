/** Who may call, and with what certificates: the parts of the control plane that need keys. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Authentication, authenticatorChain, type Credentials } from "#authn/authenticator.ts";
import { clientCertificateAuthenticator } from "#authn/client-certificate.ts";
import { forwardedCertificateAuthenticator } from "#authn/forwarded-certificate.ts";
import { jwtAuthenticator } from "#authn/jwt.ts";
import { tokenReviewAuthenticator } from "#authn/token-review.ts";
import type { Authority } from "#ca/authority/authority.ts";
import { ExpiryWarner } from "#ca/authority/expiry.ts";
import { MeshAnchors } from "#ca/authority/mesh-anchors.ts";
import { openAuthority, reloadAuthority } from "#ca/authority/open-authority.ts";
import { followRevocations } from "#ca/authority/revocations.ts";
import { rotateRoot } from "#ca/authority/rotate-root.ts";
import { openSharedAuthority, type SharedCaConfig } from "#ca/authority/shared-authority.ts";
import { hasCaFiles, makeCaFolder } from "#ca/keys/ca-folder.ts";
import type { NodeAgents } from "#ca/service/node-agents.ts";
import { ServingCertificate } from "#ca/serving/serving-certificate.ts";
import { servingNames } from "#ca/serving/serving-names.ts";
import { TlsFiles } from "#ca/serving/tls-files.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { TaskGroup } from "#lib/async/task-group.ts";
import type { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import type { Logger } from "#lib/log/log.ts";
import type { ServerIdentitySource } from "#lib/net/server-identity.ts";
import type { PublishedText } from "#lib/published-text.ts";
import { fetchText } from "#sources/jwks/fetch-keys.ts";
import { fetchRules } from "./key-sets.ts";
import { nodePods } from "./node-pods.ts";
import type { DiscoveryConfig } from "./settings/config.ts";

/** How often files of the operator are looked at. */
const FILE_INTERVAL_MS = 1_000;
/** Writable in a pod, and in memory there. */
const WORKING_COPY_IN_POD = "./var/run/secrets/istio-dns/ca";
const BUNDLE_TIMEOUT_MS = 10_000;
const NO_ANCHORS: readonly never[] = [];

export interface SecurityInput {
  readonly config: DiscoveryConfig;
  /** The mesh config in effect at any time. */
  readonly mesh: () => MeshConfig;
  /** Called whenever it may have changed; returns the way to stop. */
  readonly onMesh: (listener: () => void) => () => void;
  readonly log: Logger;
  readonly now: () => number;
  /** Asked about tokens, if there is one. */
  readonly cluster?: KubernetesApi | undefined;
  /** API servers of all clusters of the mesh, by id. */
  readonly apiOf?: ((clusterId: string) => KubernetesApi | undefined) | undefined;
}

type FolderCaSettings = Omit<SharedCaConfig, "api" | "namespace">;

export type Authenticate = (credentials: Credentials) => Promise<Authentication>;

/** Client certificates first, as in Istio: they are the cheaper proof. */
export function authentication({ config, mesh, log, now, cluster, apiOf }: SecurityInput): Authenticate {
  const trustDomain = () => mesh().trustDomain;
  const trustDomains = () => [trustDomain(), ...mesh().trustDomainAliases];
  const { jwtRule } = config;
  const { trustedGateways: ranges = [] } = config.xds;
  if (jwtRule === undefined && cluster === undefined)
    log.warn("JWT_RULE is not set: workloads without a certificate cannot prove who they are");
  return authenticatorChain([
    clientCertificateAuthenticator(trustDomains),
    ...(jwtRule === undefined ? [] : [jwtAuthenticator(jwtRule, { trustDomain, now })]),
    ...(cluster === undefined
      ? []
      : [tokenReviewAuthenticator({ api: cluster, apiOf, audiences: config.tokenAudiences, trustDomain })]),
    ...(ranges.length === 0 ? [] : [forwardedCertificateAuthenticator({ ranges, trustDomains })]),
  ]);
}

/** The authority, and what the leader among replicas has to do for it. */
export interface StartedCa {
  readonly authority: Authority;
  /** Certificates that the operator revoked; undefined when nobody is told of any. */
  readonly revocations?: PublishedText | undefined;
  readonly lead: (signal: AbortSignal) => Promise<void>;
}

/** The certificate authority, if it is on; what it signs with is followed, and its own root is replaced in time. */
export async function startCa(
  input: SecurityInput,
  tasks: TaskGroup,
  stop: AbortSignal,
): Promise<StartedCa | undefined> {
  const { config, mesh, now, cluster } = input;
  if (!config.ca.enabled) return undefined;
  const log = input.log.scope("ca");
  const anchors = config.ca.multiRoot ? meshAnchors(input) : undefined;
  if (anchors !== undefined) tasks.start((signal) => anchors.run(signal));
  const further = anchors && { furtherRoots: anchors };
  const settings = { ...config.ca, ...further, trustDomain: mesh().trustDomain, log, now };
  const isShared = cluster !== undefined && !(await hasCaFiles(config.ca.folder));
  const started = isShared
    ? await startSharedCa({ ...settings, api: cluster, namespace: config.namespace }, tasks, stop)
    : await startFolderCa(settings, tasks);
  if (started === undefined) return undefined;
  tasks.start((signal) => new ExpiryWarner({ authority: started.authority, log, now }).run(signal));
  const { folder, tellsRevocations } = config.ca;
  if (!tellsRevocations) return started;
  const followed = { authority: started.authority, folder, log, intervalMs: FILE_INTERVAL_MS };
  return { ...started, revocations: await followRevocations(followed, tasks.signal) };
}

/** Of a folder that an operator filled, or that is ours. */
async function startFolderCa(settings: FolderCaSettings, tasks: TaskGroup): Promise<StartedCa> {
  const authority = await openAuthority(settings);
  reloadAuthority({ ...settings, authority, intervalMs: FILE_INTERVAL_MS }, tasks.signal);
  tasks.start((signal) => rotateRoot({ ...settings, authority }, signal));
  return { authority, lead: async () => {} };
}

/** Of a Secret in the cluster, where nothing was plugged in. */
async function startSharedCa(
  settings: SharedCaConfig,
  tasks: TaskGroup,
  stop: AbortSignal,
): Promise<StartedCa | undefined> {
  const shared = await openSharedAuthority({ ...settings, folder: await workingCopy(settings.folder) }, stop);
  if (shared === undefined) return undefined;
  tasks.start((signal) => shared.follow(signal));
  return { authority: shared.authority, lead: (signal) => shared.rotate(signal) };
}

/** Below the folder of the CA; in a pod that is usually read-only. */
async function workingCopy(folder: string): Promise<string> {
  const copy = join(folder, "shared");
  try {
    await makeCaFolder(copy);
    return copy;
  } catch {
    // If that other place cannot be written either, the failure is told.
    return WORKING_COPY_IN_POD;
  }
}

/** Agents that may act for others: those on the list, where Kubernetes knows which pods run on their node. */
export function nodeAgents({ config, cluster }: SecurityInput): NodeAgents | undefined {
  const { trustedNodeAccounts: trustedAccounts = [] } = config.ca;
  return cluster === undefined || trustedAccounts.length === 0
    ? undefined
    : { trustedAccounts, pods: nodePods(cluster) };
}

/** Workloads trust `caCertificates` of the mesh config, as they are at any time. */
function meshAnchors({ config, mesh, onMesh, log }: SecurityInput): MeshAnchors {
  return new MeshAnchors({
    entries: () => mesh().caCertificates ?? NO_ANCHORS,
    onChange: onMesh,
    fetch: (url, signal) =>
      fetchText(url, fetchRules(config), AbortSignal.any([signal, AbortSignal.timeout(BUNDLE_TIMEOUT_MS)])),
    log: log.scope("trustbundle"),
  });
}

/** By what clients and the API server believe the certificate that we show; undefined where we have none. */
export function publishedRoots(
  authority: Authority | undefined,
  identity: ServerIdentitySource | undefined,
): PublishedText | undefined {
  if (identity instanceof TlsFiles)
    return { text: () => identity.current().clientRoots, onText: (changed) => identity.subscribe(changed) };
  if (authority === undefined) return undefined;
  return { text: () => authority.trustBundle(), onText: (changed) => authority.onTrustChanged(changed) };
}

/** Where Secret `istiod-tls` is mounted, with its own root or the mesh's. */
const MOUNTED_TLS = "./var/run/secrets/istiod/tls";
const MOUNTED_ROOTS = ["./var/run/secrets/istiod/ca/root-cert.pem", join(MOUNTED_TLS, "ca.crt")];

/** Files of the operator: those that flags name, else the mounted ones if they are there. */
function operatorFiles({ tlsFiles }: DiscoveryConfig): DiscoveryConfig["tlsFiles"] {
  if (tlsFiles !== undefined) return tlsFiles;
  const [certFile, keyFile] = [join(MOUNTED_TLS, "tls.crt"), join(MOUNTED_TLS, "tls.key")];
  const caFile = MOUNTED_ROOTS.find((file) => existsSync(file));
  return caFile !== undefined && existsSync(certFile) && existsSync(keyFile)
    ? { certFile, keyFile, caFile }
    : undefined;
}

/** What the TLS listener shows: the operator's files, else a certificate of the CA, else there is none. */
export async function startServerIdentity(
  input: SecurityInput,
  authority: Authority | undefined,
  tasks: TaskGroup,
): Promise<ServerIdentitySource | undefined> {
  const { config, mesh, now } = input;
  const log = input.log.scope("ca");
  const ofOperator = operatorFiles(config);
  if (ofOperator !== undefined) {
    const files = await TlsFiles.read({ ...ofOperator, log, intervalMs: FILE_INTERVAL_MS });
    files.watch(tasks.signal);
    return files;
  }
  if (authority === undefined) return undefined;
  const { namespace, revision, customHosts, features } = config;
  const discoveryHost = hostOf(mesh().defaultConfig.discoveryAddress ?? "");
  const names = servingNames({ namespace, revision, customHosts, domain: features.domain, discoveryHost });
  const certificate = await ServingCertificate.issue({ authority, names, log, now });
  tasks.start((signal) => certificate.run(signal));
  return certificate;
}

/** `host` of `host:port`, without the brackets of IPv6. */
function hostOf(address: string): string {
  return address.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1");
}
