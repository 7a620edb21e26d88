import type { EnvValues } from "#lib/env/env-table.ts";
import type { AGENT_ENVIRONMENT } from "../agent-environment.ts";
import { gcpMetadataHost } from "../platform/platform.ts";
import type { RotationOptions } from "./certificate.ts";
import type { KeyOptions } from "./key.ts";

/** How the workload gets its certificates and tokens, under the names of the environment. */
export interface IdentityConfig {
  readonly trustDomain: string;
  /** CA_PROVIDER: the protocol of the CA. */
  readonly caProvider: string;
  /** CA_ADDR; empty for the discovery address. */
  readonly caAddress: string;
  /** CA_ROOT_CA: `SYSTEM` or a file. */
  readonly caRootCa: string;
  readonly caHeaders: Readonly<Record<string, string>>;
  /** PILOT_CERT_PROVIDER */
  readonly pilotCertProvider: string;
  readonly certSigner: string;
  readonly ttlSeconds: number;
  readonly rotation: RotationOptions;
  /** INITIAL_BACKOFF_MSEC: the first request waits a random time below this. */
  readonly initialBackoffMs: number;
  readonly key: KeyOptions;
  /** FILE_MOUNTED_CERTS: another authority keeps certificates in files; no CA is called. */
  readonly fileMountedCerts: boolean;
  /** FILE_DEBOUNCE_DURATION */
  readonly fileDebounceMs: number;
  /** OUTPUT_CERTS: a folder that gets the certificate in files. */
  readonly outputFolder: string;
  /** Mode of those files: other containers of a pod run as other users. */
  readonly outputMode: number;
  /** PROV_CERT: a folder with the certificate to show the CA; empty for none. */
  readonly provisionedFolder: string;
  /** WORKLOAD_IDENTITY_SOCKET_FILE: another name means a foreign SDS server. */
  readonly socketFile: string;
  /** PILOT_ENABLE_CA_CRL: point Envoy at the list of revoked certificates, where there is one. */
  readonly revocationList: boolean;
  /** JWT_POLICY */
  readonly jwtPolicy: string;
  /** CREDENTIAL_FETCHER_TYPE */
  readonly credentialFetcher: string;
  /** CREDENTIAL_IDENTITY_PROVIDER */
  readonly credentialIdentityProvider: string;
  readonly google: GoogleConfig;
}

/** Addresses of Google's services. */
export interface GoogleConfig {
  /** GCE_METADATA_HOST: `host` or `host:port`. */
  readonly metadataHost: string;
  /** GKE_CLUSTER_URL: issuer of the tokens of a GKE cluster. */
  readonly clusterUrl: string;
  /** SECURE_TOKEN_ENDPOINT: exchanges tokens of the workload for federated ones. */
  readonly secureTokenEndpoint: string;
  /** ACCESS_TOKEN_ENDPOINT: exchanges those for access tokens; `%s` stands for the project's number. */
  readonly accessTokenEndpoint: string;
  /** GOOGLE_CAS_ENDPOINT: `host:port` of Certificate Authority Service. */
  readonly casEndpoint: string;
}

export function identityConfig(values: EnvValues<typeof AGENT_ENVIRONMENT>): IdentityConfig {
  const curve = values.ECC_CURVE === "P384" ? "P-384" : "P-256";
  return {
    trustDomain: values.TRUST_DOMAIN,
    caProvider: values.CA_PROVIDER,
    caAddress: values.CA_ADDR,
    caRootCa: values.CA_ROOT_CA,
    caHeaders: values.CA_HEADER_,
    pilotCertProvider: values.PILOT_CERT_PROVIDER,
    certSigner: values.ISTIO_META_CERT_SIGNER,
    ttlSeconds: Math.floor(values.SECRET_TTL / 1000),
    rotation: {
      gracePeriodRatio: values.SECRET_GRACE_PERIOD_RATIO,
      gracePeriodRatioJitter: values.SECRET_GRACE_PERIOD_RATIO_JITTER,
    },
    initialBackoffMs: values.INITIAL_BACKOFF_MSEC,
    key: {
      curve: values.ECC_SIGNATURE_ALGORITHM === "ECDSA" ? curve : undefined,
      rsaBits: values.WORKLOAD_RSA_KEY_SIZE,
      pkcs8: values.PKCS8_KEY,
    },
    fileMountedCerts: values.FILE_MOUNTED_CERTS,
    fileDebounceMs: values.FILE_DEBOUNCE_DURATION,
    outputFolder: values.OUTPUT_CERTS,
    outputMode: values.KUBERNETES_SERVICE_HOST === "" ? 0o600 : 0o644,
    provisionedFolder: values.PROV_CERT,
    socketFile: values.WORKLOAD_IDENTITY_SOCKET_FILE,
    revocationList: values.PILOT_ENABLE_CA_CRL,
    jwtPolicy: values.JWT_POLICY,
    credentialFetcher: values.CREDENTIAL_FETCHER_TYPE,
    credentialIdentityProvider: values.CREDENTIAL_IDENTITY_PROVIDER,
    google: {
      metadataHost: gcpMetadataHost(values.GCE_METADATA_HOST),
      clusterUrl: values.GKE_CLUSTER_URL,
      secureTokenEndpoint: values.SECURE_TOKEN_ENDPOINT,
      accessTokenEndpoint: values.ACCESS_TOKEN_ENDPOINT,
      casEndpoint: values.GOOGLE_CAS_ENDPOINT,
    },
  };
}
