import { type KeyObject, sign } from "node:crypto";
import {
  bitString,
  type Der,
  explicit,
  implicitString,
  nothing,
  objectIdentifier,
  octetString,
  pem,
  sequence,
  set,
  smallInteger,
  truth,
} from "./der.ts";

const EXTENSION_REQUEST = "1.2.840.113549.1.9.14";
const SUBJECT_ALT_NAME = "2.5.29.17";
const SHA256_WITH_RSA = "1.2.840.113549.1.1.11";
const ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2";
const ECDSA_WITH_SHA384 = "1.2.840.10045.4.3.3";
/** Choice `uniformResourceIdentifier` of GeneralName. */
const URI_NAME = 6;

export interface CertificateRequestInput {
  /** SPIFFE id, which becomes the only subject alternative name. */
  readonly identity: string;
  readonly privateKey: KeyObject;
  /** Of `privateKey`. */
  readonly publicKey: KeyObject;
}

/** A PKCS#10 request in PEM: no subject, one URI name that is critical because the subject is empty. */
export function certificateRequest({ identity, privateKey, publicKey }: CertificateRequestInput): string {
  const info = sequence(
    smallInteger(0),
    sequence(),
    publicKey.export({ type: "spki", format: "der" }),
    explicit(0, extensionRequest(identity)),
  );
  const { hash, algorithm } = signatureKind(privateKey);
  return pem("CERTIFICATE REQUEST", sequence(info, algorithm, bitString(sign(hash, info, privateKey))));
}

function extensionRequest(identity: string): Der {
  const names = sequence(implicitString(URI_NAME, identity));
  const extension = sequence(objectIdentifier(SUBJECT_ALT_NAME), truth(true), octetString(names));
  return sequence(objectIdentifier(EXTENSION_REQUEST), set(sequence(extension)));
}

/** The hash is as strong as the curve: whoever asks for P-384 may not allow SHA-256. */
function signatureKind({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): { hash: string; algorithm: Der } {
  if (asymmetricKeyType === "rsa")
    return { hash: "sha256", algorithm: sequence(objectIdentifier(SHA256_WITH_RSA), nothing()) };
  return asymmetricKeyDetails?.namedCurve === "secp384r1"
    ? { hash: "sha384", algorithm: sequence(objectIdentifier(ECDSA_WITH_SHA384)) }
    : { hash: "sha256", algorithm: sequence(objectIdentifier(ECDSA_WITH_SHA256)) };
}
