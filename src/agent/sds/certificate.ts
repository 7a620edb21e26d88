import { X509Certificate } from "node:crypto";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { pemCertificates } from "#lib/pki/pem.ts";
import { parseSpiffeId } from "#lib/pki/spiffe-id.ts";
import { uriNames } from "#lib/pki/uri-names.ts";
import type { WorkloadKey } from "./key.ts";
import type { Signed } from "./sign.ts";

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

export interface Expected {
  readonly key: WorkloadKey;
  /** SPIFFE id that was asked for. */
  readonly identity: string;
  readonly now: number;
}

/** Joins what a CA signed with its key. Throws when they do not belong together, or it is for somebody else. */
export function workloadCertificate({ chain, roots = [] }: Signed, expected: Expected): WorkloadCertificate {
  const texts = [...chain, ...roots];
  // Signers of Kubernetes give the leaf and its issuers in one text, and the root in another.
  const [leaf, ...issuers] = parseAll(texts);
  if (leaf === undefined || texts.length < 2)
    throw unusable(`${texts.length} certificates: at least the leaf and the root are needed`);
  if (!leaf.checkPrivateKey(expected.key.privateKey)) throw unusable("a certificate for another key");
  checkIdentity(leaf, expected.identity);
  const expiresAt = Date.parse(leaf.validTo);
  if (expiresAt <= expected.now) throw unusable(`a certificate that has ended at ${leaf.validTo}`);
  if (!issuers.some((issuer) => leaf.checkIssued(issuer) && leaf.verify(issuer.publicKey))) {
    throw unusable("a certificate that none of the certificates beside it has signed");
  }
  return {
    chain: joinPem(chain),
    privateKey: expected.key.pem,
    roots: joinPem(roots.length > 0 ? roots : chain.slice(-1)),
    createdAt: expected.now,
    expiresAt,
  };
}

function parseAll(texts: readonly string[]): readonly X509Certificate[] {
  return texts.flatMap((text) => {
    const blocks = pemCertificates(text);
    if (blocks.length === 0) throw unusable("something that is no certificate");
    try {
      return blocks.map((pem) => new X509Certificate(pem));
    } catch (cause) {
      throw unusable(`something that is no certificate (${errorText(cause)})`);
    }
  });
}

/**
 * A CA that takes the identity from the token gives that of the token: a wrong one means the wrong token or the wrong CA.
 * The trust domain is the CA's: a pod that started before a mesh changed its own still names the former one.
 */
function checkIdentity(leaf: X509Certificate, expected: string): void {
  const wanted = parseSpiffeId(expected);
  // Without a namespace or an account in the environment only the CA knows who we are.
  if (wanted === undefined) return;
  const uris = uriNames(leaf.raw);
  const fits = uris
    .map(parseSpiffeId)
    .some((id) => id?.namespace === wanted.namespace && id.serviceAccount === wanted.serviceAccount);
  if (!fits) throw unusable(`a certificate for ${uris.join(", ") || "nobody"} instead of ${expected}`);
}

function unusable(what: string): MeshError {
  return new MeshError("CA_ANSWER_UNUSABLE", `The CA answered with ${what}`);
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
