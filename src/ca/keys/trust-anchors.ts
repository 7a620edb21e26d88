import { X509Certificate } from "node:crypto";
import { errorText } from "#lib/mesh-error.ts";
import { pemCertificates } from "#lib/pki/pem.ts";

/** An entry of `caCertificates` of the mesh config, as far as it matters here. */
export interface CaCertificate {
  readonly pem?: string | undefined;
  readonly spiffeBundleUrl?: string | undefined;
}

export interface TrustAnchors {
  /** PEM, one certificate each. */
  readonly anchors: readonly string[];
  /** Why entries are left out, one line each. */
  readonly problems: readonly string[];
}

/**
 * Roots that workloads trust beside those of the CA; an entry that is wrong is left out and the others stay. `bundleOf` has
 * the roots behind a `spiffeBundleUrl`, or undefined before they were fetched for the first time.
 */
export function trustAnchors(
  entries: readonly CaCertificate[],
  bundleOf: (url: string) => readonly string[] | undefined,
): TrustAnchors {
  const anchors = new Set<string>();
  const problems: string[] = [];
  for (const [i, { pem = "", spiffeBundleUrl }] of entries.entries()) {
    try {
      const certificates = spiffeBundleUrl === undefined ? ownRoots(pem) : (bundleOf(spiffeBundleUrl) ?? []);
      for (const text of certificates) anchors.add(text);
    } catch (error) {
      problems.push(`caCertificates[${i}]: ${errorText(error)}`);
    }
  }
  return { anchors: [...anchors], problems };
}

function ownRoots(pem: string): readonly string[] {
  const certificates = pemCertificates(pem);
  if (certificates.length === 0) throw new Error("pem holds no certificate");
  if (!certificates.every((text) => new X509Certificate(text).ca)) throw new Error("pem is no CA certificate");
  return certificates;
}
