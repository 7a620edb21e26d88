/** Which root certificates the control plane and its CA are recognised by. */
import { access } from "node:fs/promises";
import type { ProxyConfig } from "#config/proxy-config.ts";
import type { AgentConfig } from "./agent-config.ts";
import type { ControlPlaneOptions } from "./control-plane.ts";

/** Mounted from the ConfigMap `istio-ca-root-cert`. */
const ROOT_CERTIFICATE = "./var/run/secrets/istio/root-cert.pem";
/** Of installations that bring their own certificates. */
const CUSTOM_ROOT_CERTIFICATE = "./etc/certs/root-cert.pem";
const TOKEN_FILE = "./var/run/secrets/tokens/istio-token";
const SYSTEM = "SYSTEM";
/** The port on which the control plane speaks plain text. */
const PLAIN_TEXT_PORT = ":15010";

export async function controlPlaneOptions(config: AgentConfig, proxyConfig: ProxyConfig): Promise<ControlPlaneOptions> {
  const secure = proxyConfig.controlPlaneAuthPolicy !== undefined;
  return {
    address: proxyConfig.discoveryAddress,
    rootCertificate: secure ? await xdsRoot(config.xdsRootCa) : undefined,
    subjectAltName: config.istiodSan,
    headers: { clusterid: config.clusterId, ...config.xdsHeaders },
    tokenFile: TOKEN_FILE,
  };
}

export function caOptions(
  { identity, istiodSan, clusterId }: AgentConfig,
  proxyConfig: ProxyConfig,
): ControlPlaneOptions {
  const { caAddress, caRootCa, caHeaders, pilotCertProvider } = identity;
  const address = caAddress === "" ? proxyConfig.discoveryAddress : caAddress;
  const root = pilotCertProvider === "custom" ? CUSTOM_ROOT_CERTIFICATE : ROOT_CERTIFICATE;
  return {
    address,
    rootCertificate: address.endsWith(PLAIN_TEXT_PORT) ? undefined : chosen(caRootCa, root),
    subjectAltName: caAddress === "" ? istiodSan : "",
    headers: { clusterid: clusterId, ...caHeaders },
    tokenFile: TOKEN_FILE,
  };
}

async function xdsRoot(xdsRootCa: string): Promise<string> {
  if (xdsRootCa !== "") return chosen(xdsRootCa, "");
  try {
    await access(CUSTOM_ROOT_CERTIFICATE);
    return CUSTOM_ROOT_CERTIFICATE;
  } catch {
    return ROOT_CERTIFICATE;
  }
}

function chosen(given: string, fallback: string): string {
  return given === SYSTEM ? "system" : given || fallback;
}
