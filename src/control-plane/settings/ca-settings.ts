import type { KeyKind } from "#lib/pki/signing-key.ts";
import type { DiscoveryValues } from "./environment.ts";

export interface CaSettings {
  readonly enabled: boolean;
  readonly folder: string;
  /** Of the private keys; undefined: they are not encrypted. */
  readonly passphraseFile: string | undefined;
  readonly defaultTtlMs: number;
  readonly maxTtlMs: number;
  readonly rootLifetimeMs: number;
  readonly rootKey: KeyKind;
  /** Last part of a self-signed root's life in which it is replaced, in percent. */
  readonly gracePercent: number;
  /** Between two looks at the root; 0: it is not replaced. */
  readonly checkIntervalMs: number;
  /** Certificates that one identity may ask for in a second; 0: any number. */
  readonly requestsPerIdentity: number;
  /** Workloads trust `caCertificates` of the mesh config too. */
  readonly multiRoot: boolean;
  /** Every namespace is told which certificates are revoked. */
  readonly tellsRevocations?: boolean;
  /** `namespace/account` of agents that may act for the workloads of their node; nobody when left out. */
  readonly trustedNodeAccounts?: readonly string[];
}

/** Reads what the environment says of the certificate authority. */
export function caSettings(env: DiscoveryValues): CaSettings {
  return {
    enabled: env.ENABLE_CA_SERVER,
    folder: env.ROOT_CA_DIR,
    passphraseFile: env.CA_KEY_PASSPHRASE_FILE || undefined,
    defaultTtlMs: env.DEFAULT_WORKLOAD_CERT_TTL,
    maxTtlMs: env.MAX_WORKLOAD_CERT_TTL,
    rootLifetimeMs: env.CITADEL_SELF_SIGNED_CA_CERT_TTL,
    rootKey: env.CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE,
    gracePercent: env.CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE,
    checkIntervalMs: Math.max(0, env.CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL),
    requestsPerIdentity: env.CA_REQUESTS_PER_SECOND_PER_IDENTITY,
    multiRoot: env.ISTIO_MULTIROOT_MESH,
    tellsRevocations: env.PILOT_ENABLE_CA_CRL,
    trustedNodeAccounts: env.CA_TRUSTED_NODE_ACCOUNTS,
  };
}
