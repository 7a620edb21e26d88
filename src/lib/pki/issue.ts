/**
 * Certificates made by us. `reflect-metadata` comes first: `@peculiar/x509` registers its ASN.1 types with it at import.
 */
import "reflect-metadata";
import { createPublicKey, type KeyObject, randomBytes, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import * as x509 from "@peculiar/x509";
import { pem } from "./der.ts";
import { generateSigningKey, type KeyKind, type SigningKey } from "./signing-key.ts";

/** A certificate that may sign others, with its key. */
export interface Issuer {
  readonly certificate: X509Certificate;
  readonly key: SigningKey;
}

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

export interface LeafInput extends Validity {
  readonly issuer: Issuer;
  readonly publicKey: KeyObject;
  /** URIs, IP addresses and DNS names. The subject stays empty, which makes this extension critical. */
  readonly subjectAltNames: readonly string[];
}

/** A certificate for TLS servers and clients that says no more than its alternative names. PEM. */
export async function issueLeaf(input: LeafInput): Promise<string> {
  const { KeyUsageFlags, ExtendedKeyUsage } = x509;
  const issuer = new x509.X509Certificate(input.issuer.certificate.raw);
  const extensions = [
    new x509.KeyUsagesExtension(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment, true),
    new x509.ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
    new x509.BasicConstraintsExtension(false, undefined, true),
    ...authorityKeyIdentifier(issuer),
    new x509.SubjectAlternativeNameExtension(input.subjectAltNames.map(generalName), true),
  ];
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    issuer: issuer.subjectName,
    subject: "",
    notBefore: input.notBefore,
    notAfter: input.notAfter,
    publicKey: spki(input.publicKey),
    signingKey: input.issuer.key.cryptoKey,
    signingAlgorithm: input.issuer.key.algorithm,
    extensions,
  });
  return pem("CERTIFICATE", new Uint8Array(certificate.rawData));
}

export interface RootInput extends Validity {
  readonly organization: string;
  readonly keyKind: KeyKind;
}

/** A self-signed certificate that signs others, and its new key. */
export async function issueRoot(input: RootInput): Promise<Issuer> {
  const key = await generateSigningKey(input.keyKind);
  const publicKey = spki(createPublicKey(key.privateKey));
  const name = new x509.Name([{ O: [input.organization] }]);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    issuer: name,
    subject: name,
    notBefore: input.notBefore,
    notAfter: input.notAfter,
    publicKey,
    signingKey: key.cryptoKey,
    signingAlgorithm: key.algorithm,
    extensions: [
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      new x509.BasicConstraintsExtension(true, undefined, true),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ],
  });
  return { certificate: new X509Certificate(Buffer.from(certificate.rawData)), key };
}

function spki(key: KeyObject): x509.PublicKey {
  return new x509.PublicKey(key.export({ format: "der", type: "spki" }));
}

/** Points at the issuer's own key identifier; an issuer without one gets no pointer, since any other would be wrong. */
function authorityKeyIdentifier(issuer: x509.X509Certificate): x509.Extension[] {
  const identifier = issuer.getExtension(x509.SubjectKeyIdentifierExtension);
  return identifier === null ? [] : [new x509.AuthorityKeyIdentifierExtension(identifier.keyId)];
}

function generalName(name: string): x509.JsonGeneralName {
  if (isIP(name) !== 0) return { type: "ip", value: name };
  return { type: /^[a-z]+:\/\//.test(name) ? "url" : "dns", value: name };
}

/** 127 random bits: positive in ASN.1, and the first byte is not zero. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}
