/** What the authority signs with: key, certificate, the way from there to a root, and the roots that workloads trust. */
import { X509Certificate } from "node:crypto";
import { MeshError } from "#lib/mesh-error.ts";
import type { Issuer } from "#lib/pki/issue.ts";
import { pemCertificates } from "#lib/pki/pem.ts";
import { parseSigningKey } from "#lib/pki/signing-key.ts";
import { CA_FILE_NAMES } from "./ca-folder.ts";

/** Contents of the four files of a CA folder. */
export interface CaFiles {
  /** ca-key.pem */
  readonly keyPem: string;
  /** ca-cert.pem */
  readonly certificatePem: string;
  /** cert-chain.pem: what a peer needs between a leaf and its root; empty when the root signs leaves itself. */
  readonly chainPem: string;
  /** root-cert.pem: one or more roots. */
  readonly rootPem: string;
  /** Opens an encrypted key. */
  readonly passphrase?: string | undefined;
  /** What the files are called where they have other names. */
  readonly names?: Readonly<Record<CaFile, string>>;
}

/** One of the files. */
export type CaFile = "keyPem" | "certificatePem" | "chainPem" | "rootPem";

export interface SigningBundle {
  readonly issuer: Issuer;
  /** PEM certificates that follow a leaf. */
  readonly chain: readonly string[];
  /** PEM, all roots in one text. */
  readonly rootPem: string;
  readonly roots: readonly X509Certificate[];
  /** From the signing certificate to its root, both included: when one of them ends, what is signed is worth nothing. */
  readonly path: readonly X509Certificate[];
}

/** Checks that the files belong together and can sign now; each thing that is wrong has its sentence. */
export function signingBundle(files: CaFiles, now: number): SigningBundle {
  const names = namesOf(files);
  const chain = pemCertificates(files.chainPem);
  const roots = certificates(files.rootPem, names.rootPem);
  const [certificate] = certificates(files.certificatePem, names.certificatePem);
  if (certificate === undefined || roots.length === 0) {
    throw new MeshError(
      "CA_FILES_INVALID",
      `${roots.length === 0 ? names.rootPem : names.certificatePem} holds no certificate`,
    );
  }
  const key = signingKey(files);
  if (!certificate.checkPrivateKey(key.privateKey)) {
    throw new MeshError(
      "CA_FILES_INVALID",
      `the key in ${names.keyPem} does not belong to the certificate in ${names.certificatePem}`,
    );
  }
  if (!certificate.ca) {
    throw new MeshError(
      "CA_FILES_INVALID",
      `the certificate in ${names.certificatePem} may not sign others: it is no CA certificate`,
    );
  }
  const path = pathToRoot({ certificate, roots, chain: certificates(files.chainPem, names.chainPem), names, now });
  return { issuer: { certificate, key }, chain, rootPem: files.rootPem, roots, path };
}

function namesOf({ names = CA_FILE_NAMES }: CaFiles): Readonly<Record<CaFile, string>> {
  return names;
}

/** True when both sign and are trusted alike. */
export function isSameBundle(one: SigningBundle, other: SigningBundle): boolean {
  return (
    one.issuer.certificate.raw.equals(other.issuer.certificate.raw) &&
    one.rootPem === other.rootPem &&
    one.chain.join() === other.chain.join()
  );
}

/** True when both trust a root in common, so that workloads with old and new certificates can still talk. */
export function sharesRoot(one: SigningBundle, other: SigningBundle): boolean {
  return one.roots.some((root) => other.roots.some((candidate) => candidate.raw.equals(root.raw)));
}

function certificates(text: string, file: string): X509Certificate[] {
  try {
    return pemCertificates(text).map((pem) => new X509Certificate(pem));
  } catch (cause) {
    throw new MeshError("CA_FILES_INVALID", `a certificate in ${file} cannot be parsed`, { cause });
  }
}

function signingKey(files: CaFiles): Issuer["key"] {
  try {
    return parseSigningKey(files.keyPem, files.passphrase);
  } catch (cause) {
    throw new MeshError("CA_FILES_INVALID", `the key in ${namesOf(files).keyPem} cannot be used`, { cause });
  }
}

interface PathInput {
  readonly certificate: X509Certificate;
  readonly chain: readonly X509Certificate[];
  readonly roots: readonly X509Certificate[];
  readonly names: Readonly<Record<CaFile, string>>;
  readonly now: number;
}

/** Follows the issuers from the signing certificate to a root. Peers get the chain alone, so all between must be in it. */
function pathToRoot({ certificate, chain, roots, names, now }: PathInput): readonly X509Certificate[] {
  const has = (list: readonly X509Certificate[], wanted: X509Certificate) =>
    list.some((candidate) => candidate.raw.equals(wanted.raw));
  const path = [certificate];
  let current = certificate;
  // Each round takes one certificate of the chain, so that a loop in it ends.
  for (let rounds = 0; rounds <= chain.length; rounds++) {
    checkValidity(current, now);
    if (has(roots, current)) return path;
    if (!has(chain, current)) {
      throw new MeshError("CA_FILES_INVALID", `${names.chainPem} lacks the certificate of ${nameOf(current)}`);
    }
    const issuer = [...roots, ...chain].find((candidate) => isIssuedBy(current, candidate));
    if (issuer === undefined) break;
    current = issuer;
    path.push(issuer);
  }
  throw new MeshError(
    "CA_FILES_INVALID",
    `the certificate in ${names.certificatePem} does not lead to a root: no issuer of ${nameOf(current)} in ${names.chainPem} or ${names.rootPem}`,
  );
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function checkValidity(certificate: X509Certificate, now: number): void {
  const { validFromDate, validToDate } = certificate;
  if (now < validToDate.getTime() && now >= validFromDate.getTime()) return;
  throw new MeshError(
    "CA_FILES_INVALID",
    `the certificate of ${nameOf(certificate)} is valid from ${validFromDate.toISOString()} to ${validToDate.toISOString()}, not now`,
  );
}

function nameOf(certificate: X509Certificate): string {
  return `"${certificate.subject.replaceAll("\n", ", ")}"`;
}
