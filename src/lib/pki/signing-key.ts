/** Keys that sign certificates. WebCrypto signs with them on the thread pool, not on the event loop. */
import { createPrivateKey, generateKeyPair, type KeyObject, type webcrypto } from "node:crypto";
import { promisify } from "node:util";
import { MeshError } from "../mesh-error.ts";

/** How a key signs, in WebCrypto's words. */
export type SigningAlgorithm =
  | { readonly name: "ECDSA"; readonly namedCurve: string; readonly hash: string }
  | { readonly name: "RSASSA-PKCS1-v1_5"; readonly hash: string };

export interface SigningKey {
  readonly privateKey: KeyObject;
  readonly cryptoKey: webcrypto.CryptoKey;
  readonly algorithm: SigningAlgorithm;
}

/** Kind of a new key: P-256 is smaller and signs faster; RSA is for peers that know nothing else. */
export type KeyKind = "P-256" | { readonly rsaBits: number };

const CURVES: Readonly<Record<string, { readonly namedCurve: string; readonly hash: string }>> = {
  prime256v1: { namedCurve: "P-256", hash: "SHA-256" },
  secp384r1: { namedCurve: "P-384", hash: "SHA-384" },
  secp521r1: { namedCurve: "P-521", hash: "SHA-512" },
};
const generateEc = promisify(generateKeyPair);

/** A new private key. */
export async function generateSigningKey(kind: KeyKind): Promise<SigningKey> {
  const { privateKey } =
    kind === "P-256"
      ? await generateEc("ec", { namedCurve: "prime256v1" })
      : await generateEc("rsa", { modulusLength: kind.rsaBits });
  return signingKey(privateKey);
}

/** Reads a private key of any PEM form: PKCS#8, PKCS#1, SEC 1. The passphrase is for one that is encrypted. */
export function parseSigningKey(pem: string, passphrase?: string): SigningKey {
  let key: KeyObject;
  try {
    key = createPrivateKey(passphrase === undefined ? pem : { key: pem, passphrase });
  } catch (cause) {
    const wanted = passphrase === undefined ? "without a passphrase" : "that the given passphrase opens";
    throw new MeshError("KEY_INVALID", `not a PEM private key ${wanted}`, { cause });
  }
  return signingKey(key);
}

/** The private key as PKCS#8 PEM, encrypted if there is a passphrase. */
export function formatSigningKey(key: SigningKey, passphrase?: string): string {
  const encryption = passphrase === undefined ? {} : { cipher: "aes-256-cbc", passphrase };
  return key.privateKey.export({ format: "pem", type: "pkcs8", ...encryption }).toString();
}

function signingKey(privateKey: KeyObject): SigningKey {
  const algorithm = signingAlgorithm(privateKey);
  return { privateKey, algorithm, cryptoKey: privateKey.toCryptoKey(algorithm, false, ["sign"]) };
}

function signingAlgorithm(key: KeyObject): SigningAlgorithm {
  if (key.asymmetricKeyType === "rsa") return { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const curve = CURVES[key.asymmetricKeyDetails?.namedCurve ?? ""];
  if (curve !== undefined) return { name: "ECDSA", ...curve };
  throw new MeshError(
    "KEY_INVALID",
    `a key of type "${key.asymmetricKeyType}" cannot sign certificates here: use RSA, or ECDSA on P-256, P-384 or P-521`,
  );
}
