import type { EnvReader } from "#lib/env/env-reader.ts";
import type { KeyKind } from "#lib/pki/signing-key.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

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
export function caSettings(read: EnvReader): CaSettings {
  return {
    enabled: read.boolean("ENABLE_CA_SERVER", true),
    folder: read.string("ROOT_CA_DIR", "./etc/cacerts"),
    passphraseFile: read.string("CA_KEY_PASSPHRASE_FILE") || undefined,
    defaultTtlMs: read.lifetimeMs("DEFAULT_WORKLOAD_CERT_TTL", DAY_MS),
    maxTtlMs: read.lifetimeMs("MAX_WORKLOAD_CERT_TTL", 90 * DAY_MS),
    rootLifetimeMs: read.lifetimeMs("CITADEL_SELF_SIGNED_CA_CERT_TTL", 3650 * DAY_MS),
    rootKey: rootKey(read),
    gracePercent: gracePercent(read),
    checkIntervalMs: Math.max(0, read.durationMs("CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL", HOUR_MS)),
    requestsPerIdentity: read.integer("CA_REQUESTS_PER_SECOND_PER_IDENTITY", 100),
    multiRoot: read.boolean("ISTIO_MULTIROOT_MESH", false),
    tellsRevocations: read.boolean("PILOT_ENABLE_CA_CRL", true),
    trustedNodeAccounts: read.list("CA_TRUSTED_NODE_ACCOUNTS"),
  };
}

function rootKey(read: EnvReader): KeyKind {
  const text = read.string("CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE");
  if (text === "") return "P-256";
  const rsaBits = Number(text);
  if (Number.isInteger(rsaBits) && rsaBits >= 2048 && rsaBits <= 8192) return { rsaBits };
  read.problems.push(`CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: "${text}" is not a number of bits from 2048 to 8192`);
  return "P-256";
}

function gracePercent(read: EnvReader): number {
  const percent = read.integer("CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE", 20);
  if (percent <= 100) return percent;
  read.problems.push(`CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: ${percent} is more than 100 percent`);
  return 100;
}
