import { X509Certificate } from "node:crypto";
import { MeshError } from "#lib/mesh-error.ts";
import type { WorkloadKey } from "./key.ts";

/** The workload's identity: what it shows, and whom it trusts. All PEM. */
export interface WorkloadCertificate {
  /** Leaf first. */
  readonly chain: string;
  readonly privateKey: string;
  readonly roots: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface RotationOptions {
  /** SECRET_GRACE_PERIOD_RATIO: the part of its lifetime that a certificate has left when it is replaced. */
  readonly gracePeriodRatio: number;
  /** SECRET_GRACE_PERIOD_RATIO_JITTER: the ratio differs by up to this, so that not all workloads come at once. */
  readonly gracePeriodRatioJitter: number;
}

/** Joins a signed chain, of which the last certificate is the root, with its key. Throws when they do not belong together. */
export function workloadCertificate(chain: readonly string[], key: WorkloadKey, now: number): WorkloadCertificate {
  const [leaf] = chain;
  const roots = chain.at(-1);
  if (leaf === undefined || roots === undefined || chain.length < 2) {
    throw new MeshError(
      "CA_ANSWER_UNUSABLE",
      `The CA answered with ${chain.length} certificates: at least the leaf and the root are needed`,
    );
  }
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(leaf);
  } catch (cause) {
    throw new MeshError("CA_ANSWER_UNUSABLE", "The CA answered with something that is no certificate", { cause });
  }
  if (!certificate.checkPrivateKey(key.privateKey)) {
    throw new MeshError("CA_ANSWER_UNUSABLE", "The CA answered with a certificate for another key");
  }
  return {
    chain: joinPem(chain),
    privateKey: key.pem,
    roots,
    createdAt: now,
    expiresAt: Date.parse(certificate.validTo),
  };
}

/** How long to keep a certificate, from `now`. `random` is in [0, 1). */
export function rotationDelayMs(
  { createdAt, expiresAt }: Pick<WorkloadCertificate, "createdAt" | "expiresAt">,
  { gracePeriodRatio, gracePeriodRatioJitter }: RotationOptions,
  { now, random }: { readonly now: number; readonly random: number },
): number {
  const jitter = (random * 2 - 1) * gracePeriodRatioJitter;
  const ratio = Math.min(1, Math.max(0, gracePeriodRatio + jitter));
  return Math.max(0, expiresAt - ratio * (expiresAt - createdAt) - now);
}

/** PEM texts one after the other, each on a line of its own. */
export function joinPem(certificates: readonly string[]): string {
  return certificates
    .map((pem, index) => (index === certificates.length - 1 || pem.endsWith("\n") ? pem : `${pem}\n`))
    .join("");
}
