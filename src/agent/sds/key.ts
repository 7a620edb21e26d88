import { generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { MeshError } from "#lib/mesh-error.ts";

export interface KeyOptions {
  /** ECC_SIGNATURE_ALGORITHM is `ECDSA`: the curve of ECC_CURVE; else RSA. */
  readonly curve: "P-256" | "P-384" | undefined;
  /** WORKLOAD_RSA_KEY_SIZE */
  readonly rsaBits: number;
  /** PKCS8_KEY: PKCS#8 instead of the older forms, which more programs read. */
  readonly pkcs8: boolean;
}

const SMALLEST_RSA_BITS = 2048;
const LARGEST_RSA_BITS = 16_384;

/** Throws when no CA would sign for such a key, or no TLS library could use it, were it ever made. */
export function checkKeyOptions({ curve, rsaBits }: KeyOptions): void {
  if (curve !== undefined || (rsaBits >= SMALLEST_RSA_BITS && rsaBits <= LARGEST_RSA_BITS)) return;
  const problem =
    rsaBits < SMALLEST_RSA_BITS
      ? `does not meet the minimum required size of ${SMALLEST_RSA_BITS}`
      : `is above the maximum size of ${LARGEST_RSA_BITS}`;
  throw new MeshError(
    "IDENTITY_INVALID",
    `WORKLOAD_RSA_KEY_SIZE: requested key size ${problem} (requested: ${rsaBits})`,
  );
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
