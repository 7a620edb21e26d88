import { issueRoot } from "#lib/pki/issue.ts";
import { formatSigningKey, type KeyKind } from "#lib/pki/signing-key.ts";
import { CLOCK_SKEW_MS } from "./lifetime.ts";
import type { CaFiles } from "./signing-bundle.ts";

export interface SelfSignedInput {
  /** Becomes the organization of the root's name, as in Istio. */
  readonly trustDomain: string;
  readonly lifetimeMs: number;
  readonly keyKind: KeyKind;
  readonly now: number;
  /** Encrypts the key. */
  readonly passphrase?: string | undefined;
}

/** A new root that signs workload certificates itself. */
export async function selfSignedCa(input: SelfSignedInput): Promise<CaFiles> {
  const { certificate, key } = await issueRoot({
    organization: input.trustDomain,
    keyKind: input.keyKind,
    notBefore: new Date(input.now - CLOCK_SKEW_MS),
    notAfter: new Date(input.now + input.lifetimeMs),
  });
  const pem = certificate.toString();
  return { keyPem: formatSigningKey(key, input.passphrase), certificatePem: pem, rootPem: pem, chainPem: "" };
}
