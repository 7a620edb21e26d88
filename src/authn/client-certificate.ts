import { certificateUris } from "#lib/pki/certificate-uris.ts";
import { parseSpiffeId, trustDomainInUri } from "#lib/pki/spiffe-id.ts";
import type { Authenticator } from "./authenticator.ts";

/**
 * Believes certificates of the mesh: TLS verified them, and their one URI is an identity of one of our trust domains,
 * the first of which is the one we issue for. The identity stays what the certificate says.
 */
export function clientCertificateAuthenticator(trustDomains: () => readonly string[]): Authenticator {
  return async ({ certificate }) => {
    if (certificate === undefined) return undefined;
    const [identity, ...others] = certificateUris(certificate);
    const id = identity === undefined || others.length > 0 ? undefined : parseSpiffeId(identity);
    if (identity === undefined || id === undefined) {
      return { refused: "the client certificate does not carry exactly one identity of a workload" };
    }
    const ours = trustDomains();
    if (!ours.some((domain) => trustDomainInUri(domain) === id.trustDomain)) {
      return {
        refused: `the client certificate is of trust domain "${id.trustDomain}", ours is "${ours.join('" or "')}"`,
      };
    }
    const { namespace, serviceAccount } = id;
    return { caller: { identity, namespace, serviceAccount, provedBy: "certificate" } };
  };
}
