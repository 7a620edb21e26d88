/** Which root certificates the control plane and its CA are recognised by, and how they recognise us. */
import { statSync } from "node:fs";
import { join } from "node:path";
import type { ProxyConfig } from "#config/proxy-config/proxy-config.ts";
import type { Logger } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { environmentProxy } from "#lib/net/environment-proxy.ts";
import type { AgentConfig } from "./agent-config.ts";
import type { ControlPlaneServer } from "./control-plane.ts";
import { type Place, pathIn } from "./place.ts";
import { readRootFile } from "./root-file.ts";
import { bringsCredentials } from "./sds/certificate-plan.ts";

/** Mounted from the ConfigMap `istio-ca-root-cert`. */
const ROOT_CERTIFICATE = "./var/run/secrets/istio/root-cert.pem";
/** Of installations that bring their own certificates. */
const CUSTOM_ROOT_CERTIFICATE = "./etc/certs/root-cert.pem";
export const TOKEN_FILE = "./var/run/secrets/tokens/istio-token";
const SYSTEM = "SYSTEM";
/** The port on which the control plane speaks plain text. */
const PLAIN_TEXT_PORT = ":15010";
/** gRPC's ways to name a host that is looked up: `dns:host:port`, `dns:///host:port`. A host may be called `dns` as well. */
const TARGET_SCHEME = /^(?:dns|passthrough):(?:\/\/[^/]*\/)?(?=.*:)/;

/** Keys of ProxyConfig's `proxyMetadata` that name the files for the control plane where the workload's are mounted. */
const CLIENT_KEY = "ISTIO_META_TLS_CLIENT_KEY";
const CLIENT_CERTIFICATE = "ISTIO_META_TLS_CLIENT_CERT_CHAIN";
const CLIENT_ROOTS = "ISTIO_META_TLS_CLIENT_ROOT_CERT";

/** What roots and tokens are looked up with. */
export interface TrustInput {
  readonly config: AgentConfig;
  readonly proxyConfig: ProxyConfig;
  readonly place: Place;
  readonly log: Logger;
}

/** How to reach the control plane. Rejects when there is nothing usable to recognise it by. */
export async function controlPlaneServer(input: TrustInput): Promise<ControlPlaneServer> {
  const { config, proxyConfig } = input;
  const secure = proxyConfig.controlPlaneAuthPolicy !== undefined;
  return {
    address: proxyConfig.discoveryAddress,
    proxy: proxyTo(proxyConfig.discoveryAddress, config),
    rootCertificate: secure ? await rootFor("XDS", xdsRoot, input) : undefined,
    subjectAltName: config.istiodSan,
    headers: { clusterid: config.clusterId, ...config.xdsHeaders },
    clientCertificate: provisioned(input) ?? mounted(input),
    warn: (reason) => input.log.warn(reason),
  };
}

/** How to reach the CA. Rejects when there is nothing usable to recognise it by. */
export async function caServer(input: TrustInput): Promise<ControlPlaneServer> {
  const { config, proxyConfig } = input;
  const { identity, istiodSan, clusterId } = config;
  const { caAddress, caHeaders } = identity;
  const address = caAddress === "" ? proxyConfig.discoveryAddress : caAddress.replace(TARGET_SCHEME, "");
  const plain = address.endsWith(PLAIN_TEXT_PORT);
  return {
    address,
    proxy: proxyTo(address, config),
    rootCertificate: plain ? undefined : await rootFor("CA", caRoot, input),
    subjectAltName: caAddress === "" ? istiodSan : "",
    headers: { clusterid: clusterId, ...caHeaders },
    clientCertificate: provisioned(input),
    warn: (reason) => input.log.warn(reason),
  };
}

/** gRPC takes all servers for those of HTTPS, also such as speak plain text. */
function proxyTo(address: string, { proxies }: AgentConfig): string | undefined {
  const server = `https://${address}`;
  return URL.canParse(server) ? environmentProxy(server, proxies) : undefined;
}

/** Where roots are expected. `later` ones need not be there yet: those of a virtual machine may come after the agent. */
type RootChoice = { readonly path: string; readonly later?: boolean } | "system";

async function rootFor(
  what: "XDS" | "CA",
  choose: (input: TrustInput) => RootChoice,
  input: TrustInput,
): Promise<string | "system"> {
  const choice = choose(input);
  if (choice === "system") return "system";
  const path = pathIn(input.place, choice.path);
  if (isFile(path)) readRootFile(what, path);
  else if (!choice.later)
    throw new MeshError("ROOT_CERTIFICATE_MISSING", `root CA file for ${what} does not exist ${path}`);
  return path;
}

function xdsRoot({ config, proxyConfig, place }: TrustInput): RootChoice {
  const { provisionedFolder, fileMountedCerts, pilotCertProvider } = config.identity;
  if (config.xdsRootCa === SYSTEM) return "system";
  if (config.xdsRootCa !== "") return { path: config.xdsRootCa };
  if (isFile(pathIn(place, CUSTOM_ROOT_CERTIFICATE))) return { path: CUSTOM_ROOT_CERTIFICATE };
  if (provisionedFolder !== "") return { path: join(provisionedFolder, "root-cert.pem"), later: true };
  const { [CLIENT_ROOTS]: roots = "" } = proxyConfig.proxyMetadata ?? {};
  if (fileMountedCerts && roots === "")
    throw new MeshError(
      "ROOT_CERTIFICATE_MISSING",
      `root CA file for XDS is not named: with FILE_MOUNTED_CERTS it is ${CLIENT_ROOTS} of proxyMetadata`,
    );
  if (fileMountedCerts || (roots !== "" && bringsCredentials(config.identity, place))) return { path: roots };
  if (pilotCertProvider === "none") throw providerNone("XDS");
  return { path: ROOT_CERTIFICATE };
}

function caRoot({ config }: TrustInput): RootChoice {
  const { caRootCa, provisionedFolder, pilotCertProvider } = config.identity;
  if (caRootCa === SYSTEM) return "system";
  if (caRootCa !== "") return { path: caRootCa };
  if (pilotCertProvider === "custom") return { path: CUSTOM_ROOT_CERTIFICATE };
  if (provisionedFolder !== "") return { path: join(provisionedFolder, "root-cert.pem"), later: true };
  if (pilotCertProvider === "none") throw providerNone("CA");
  return { path: ROOT_CERTIFICATE };
}

function providerNone(what: string): MeshError {
  return new MeshError(
    "ROOT_CERTIFICATE_MISSING",
    `root CA file for ${what} required but configured provider as none (PILOT_CERT_PROVIDER)`,
  );
}

/** PROV_CERT */
function provisioned({ config, place }: TrustInput): ControlPlaneServer["clientCertificate"] {
  const folder = config.identity.provisionedFolder;
  if (folder === "") return undefined;
  return {
    key: pathIn(place, join(folder, "key.pem")),
    certificate: pathIn(place, join(folder, "cert-chain.pem")),
  };
}

/** FILE_MOUNTED_CERTS, or files of another authority that were found without it. */
function mounted({ config, proxyConfig, place }: TrustInput): ControlPlaneServer["clientCertificate"] {
  const { [CLIENT_KEY]: key = "", [CLIENT_CERTIFICATE]: certificate = "" } = proxyConfig.proxyMetadata ?? {};
  if (key === "" || certificate === "") return undefined;
  if (!config.identity.fileMountedCerts && !bringsCredentials(config.identity, place)) return undefined;
  return { key: pathIn(place, key), certificate: pathIn(place, certificate) };
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch {
    return false; // what cannot be looked at is of no use either
  }
}
