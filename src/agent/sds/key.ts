import { generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";

export interface KeyOptions {
  /** ECC_SIGNATURE_ALGORITHM is `ECDSA`: the curve of ECC_CURVE; else RSA. */
  readonly curve: "P-256" | "P-384" | undefined;
  /** WORKLOAD_RSA_KEY_SIZE */
  readonly rsaBits: number;
  /** PKCS8_KEY: PKCS#8 instead of the older forms, which more programs read. */
  readonly pkcs8: boolean;
}

export interface WorkloadKey {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly pem: string;
}

/** A new key, made on another thread. */
export async function generateKey({ curve, rsaBits, pkcs8 }: KeyOptions): Promise<WorkloadKey> {
  const generate = promisify(generateKeyPair);
  const keys =
    curve === undefined
      ? await generate("rsa", { modulusLength: rsaBits })
      : await generate("ec", { namedCurve: curve });
  const type = pkcs8 ? "pkcs8" : curve === undefined ? "pkcs1" : "sec1";
  return { ...keys, pem: keys.privateKey.export({ type, format: "pem" }) as string };
}
