import type { ProxyConfig } from "#config/proxy-config/proxy-config.ts";
import type { ProxyNode } from "../node.ts";
import type { AddressFamily } from "./addresses.ts";

/** A value of JSON. */
export type Json = string | number | boolean | readonly Json[] | { readonly [key: string]: Json };

/** Where secrets from files are served when the workload's identity comes from a foreign server. */
export const FILE_SDS_SOCKET = "./var/run/secrets/credential-uds/files-socket";

/** All that the bootstrap depends on. */
export interface BootstrapInput {
  readonly node: ProxyNode;
  readonly proxyConfig: ProxyConfig;
  readonly addresses: readonly string[];
  readonly logAsJson: boolean;
  /** ISTIO_DUAL_STACK: listen on both families where the instance has both. */
  readonly dualStack: boolean;
  readonly envoyStatusPort: number;
  readonly envoyPrometheusPort: number;
  /** ENVOY_STATUS_PORT_ENABLE_PROXY_PROTOCOL */
  readonly statusPortProxyProtocol: boolean;
  readonly outlierLogPath: string;
  readonly workloadIdentitySocketFile: string;
  /** Secrets from files come over a socket of their own, since the workload's identity comes from a foreign server. */
  readonly fileCredentials?: boolean;
  /** ISTIO_DELTA_XDS is not false. */
  readonly deltaXds: boolean;
  /** XDS_ROOT_CA */
  readonly xdsRootCert: string;
  readonly exitOnZeroActiveConnections: boolean;
  /** HOST_IP, put in place of `$(HOST_IP)` in addresses. */
  readonly hostIp: string;
  /** COMPLIANCE_POLICY is `fips-140-2`. */
  readonly fips: boolean;
  /** HTTP_STRIP_FRAGMENT_FROM_PATH_UNSAFE_IF_DISABLED is not false. */
  readonly stripFragment: boolean;
}

/** The input with what follows from it. */
export interface BootstrapContext extends BootstrapInput {
  readonly family: AddressFamily;
}
