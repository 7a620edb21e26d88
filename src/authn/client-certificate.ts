import { certificateUris } from "#lib/pki/certificate-uris.ts";
import { parseSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { Authenticator } from "./authenticator.ts";

/** Believes certificates of the mesh: TLS verified them, and their one URI is an identity of our trust domain. */
export function clientCertificateAuthenticator(trustDomain: () => string): Authenticator {
  return async ({ certificate }) => {
    if (certificate === undefined) return undefined;
    const [identity, ...others] = certificateUris(certificate);
    const id = identity === undefined || others.length > 0 ? undefined : parseSpiffeId(identity);
    if (identity === undefined || id === undefined) {
      return { refused: "the client certificate does not carry exactly one identity of a workload" };
    }
    if (id.trustDomain !== trustDomain()) {
      return { refused: `the client certificate is of trust domain "${id.trustDomain}", ours is "${trustDomain()}"` };
    }
    const { namespace, serviceAccount } = id;
    return { caller: { identity, namespace, serviceAccount, provedBy: "certificate" } };
  };
}
