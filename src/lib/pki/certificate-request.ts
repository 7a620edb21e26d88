/** Reading of certificate signing requests that strangers send. All that is taken from one is its public key. */
import "reflect-metadata";
import { createPublicKey, type KeyObject } from "node:crypto";
import { Pkcs10CertificateRequest } from "@peculiar/x509";
import { MeshError } from "../mesh-error.ts";
import { parsePem } from "./pem.ts";

/** A request with an RSA key of 8192 bits and a dozen names stays below 8 KB. */
const MAX_CHARACTERS = 65_536;
const MIN_RSA_BITS = 2048;
/** Verifying costs the square of the length, and no client needs more. */
const MAX_RSA_BITS = 8192;
const LABELS = new Set(["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"]);
const CURVES = new Set(["prime256v1", "secp384r1", "secp521r1"]);
const HASHES = new Set(["SHA-256", "SHA-384", "SHA-512"]);

/** The public key of a PEM request whose signature proves that the sender has the private one. */
export async function requestedPublicKey(pem: string): Promise<KeyObject> {
  if (pem.length > MAX_CHARACTERS) {
    throw new MeshError("CSR_INVALID", `the CSR has ${pem.length} characters: at most ${MAX_CHARACTERS} are read`);
  }
  const [block, ...others] = parsePem(pem);
  if (block === undefined || others.length > 0 || !LABELS.has(block.label)) {
    throw new MeshError("CSR_INVALID", "the CSR is not one PEM block of type CERTIFICATE REQUEST");
  }
  const { request, key } = parseRequest(block.der);
  checkKey(key);
  await checkSignature(request);
  return key;
}

function parseRequest(der: Buffer): { request: Pkcs10CertificateRequest; key: KeyObject } {
  try {
    const request = new Pkcs10CertificateRequest(der);
    const spki = Buffer.from(request.publicKey.rawData);
    return { request, key: createPublicKey({ key: spki, format: "der", type: "spki" }) };
  } catch (cause) {
    throw new MeshError("CSR_INVALID", "the CSR cannot be parsed", { cause });
  }
}

function checkKey(key: KeyObject): void {
  const { modulusLength = 0, namedCurve = "" } = key.asymmetricKeyDetails ?? {};
  if (key.asymmetricKeyType === "ec") {
    if (CURVES.has(namedCurve)) return;
    throw new MeshError("CSR_INVALID", `the CSR's ECDSA key is on curve "${namedCurve}": use P-256, P-384 or P-521`);
  }
  if (key.asymmetricKeyType !== "rsa") {
    throw new MeshError("CSR_INVALID", `the CSR's key is of type "${key.asymmetricKeyType}": use RSA or ECDSA`);
  }
  if (modulusLength < MIN_RSA_BITS || modulusLength > MAX_RSA_BITS) {
    throw new MeshError(
      "CSR_INVALID",
      `the CSR's RSA key has ${modulusLength} bits: use ${MIN_RSA_BITS} to ${MAX_RSA_BITS}`,
    );
  }
}

async function checkSignature(request: Pkcs10CertificateRequest): Promise<void> {
  let verified: boolean;
  try {
    const hash = request.signatureAlgorithm.hash.name;
    if (!HASHES.has(hash)) throw new Error(`hash "${hash}" is not accepted`);
    verified = await request.verify();
  } catch (cause) {
    throw new MeshError("CSR_INVALID", "the CSR's signature cannot be checked", { cause });
  }
  if (!verified) throw new MeshError("CSR_INVALID", "the CSR's signature does not match its key");
}
