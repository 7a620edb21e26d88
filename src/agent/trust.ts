/** Which root certificates the control plane and its CA are recognised by. */
import { access } from "node:fs/promises";
import type { ProxyConfig } from "#config/proxy-config.ts";
import type { AgentConfig } from "./agent-config.ts";
import type { ControlPlaneOptions } from "./control-plane.ts";
import { type Place, pathIn } from "./place.ts";

/** Mounted from the ConfigMap `istio-ca-root-cert`. */
const ROOT_CERTIFICATE = "./var/run/secrets/istio/root-cert.pem";
/** Of installations that bring their own certificates. */
const CUSTOM_ROOT_CERTIFICATE = "./etc/certs/root-cert.pem";
const TOKEN_FILE = "./var/run/secrets/tokens/istio-token";
const SYSTEM = "SYSTEM";
/** The port on which the control plane speaks plain text. */
const PLAIN_TEXT_PORT = ":15010";

/** What roots and tokens are looked up with. */
export interface TrustInput {
  readonly config: AgentConfig;
  readonly proxyConfig: ProxyConfig;
  readonly place: Place;
}

export async function controlPlaneOptions({ config, proxyConfig, place }: TrustInput): Promise<ControlPlaneOptions> {
  const secure = proxyConfig.controlPlaneAuthPolicy !== undefined;
  return {
    address: proxyConfig.discoveryAddress,
    rootCertificate: secure ? await xdsRoot(config.xdsRootCa, place) : undefined,
    subjectAltName: config.istiodSan,
    headers: { clusterid: config.clusterId, ...config.xdsHeaders },
    tokenFile: pathIn(place, TOKEN_FILE),
  };
}

export function caOptions({ config, proxyConfig, place }: TrustInput): ControlPlaneOptions {
  const { identity, istiodSan, clusterId } = config;
  const { caAddress, caRootCa, caHeaders, pilotCertProvider } = identity;
  const address = caAddress === "" ? proxyConfig.discoveryAddress : caAddress;
  const root = pilotCertProvider === "custom" ? CUSTOM_ROOT_CERTIFICATE : ROOT_CERTIFICATE;
  return {
    address,
    rootCertificate: address.endsWith(PLAIN_TEXT_PORT) ? undefined : chosen(caRootCa, root, place),
    subjectAltName: caAddress === "" ? istiodSan : "",
    headers: { clusterid: clusterId, ...caHeaders },
    tokenFile: pathIn(place, TOKEN_FILE),
  };
}

async function xdsRoot(xdsRootCa: string, place: Place): Promise<string> {
  if (xdsRootCa !== "") return chosen(xdsRootCa, "", place);
  const custom = pathIn(place, CUSTOM_ROOT_CERTIFICATE);
  try {
    await access(custom);
    return custom;
  } catch {
    return pathIn(place, ROOT_CERTIFICATE);
  }
}

function chosen(given: string, fallback: string, place: Place): string {
  return given === SYSTEM ? "system" : pathIn(place, given || fallback);
}
