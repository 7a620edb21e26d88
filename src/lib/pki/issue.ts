/**
 * Certificates made by us. `reflect-metadata` comes first: `@peculiar/x509` registers its ASN.1 types with it at import.
 */
import "reflect-metadata";
import { createPublicKey, type KeyObject, randomBytes, sign as signBytes, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import * as x509 from "@peculiar/x509";
import {
  bitString,
  type Der,
  explicit,
  implicit,
  implicitString,
  nothing,
  objectIdentifier,
  octetString,
  pem,
  positiveInteger,
  sequence,
  smallInteger,
  time,
  truth,
} from "./der.ts";
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

/**
 * A certificate for TLS servers and clients that says no more than its alternative names. PEM.
 * Written as bytes, not with the X.509 library: that takes milliseconds of the event loop for each, while the signature
 * is made on the thread pool.
 */
export async function issueLeaf(input: LeafInput): Promise<string> {
  const { certificate, key } = input.issuer;
  const signatureAlgorithm = algorithmIdentifier(key.algorithm);
  const body = sequence(
    explicit(0, smallInteger(VERSION_3)),
    positiveInteger(Buffer.from(serialNumber(), "hex")),
    signatureAlgorithm,
    issuerParts(certificate).subject,
    sequence(time(input.notBefore), time(input.notAfter)),
    sequence(),
    input.publicKey.export({ format: "der", type: "spki" }),
    explicit(3, sequence(...leafExtensions(input))),
  );
  return pem("CERTIFICATE", sequence(body, signatureAlgorithm, bitString(await signature(key, body))));
}

const VERSION_3 = 2;
const OID = {
  keyUsage: "2.5.29.15",
  extendedKeyUsage: "2.5.29.37",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  subjectAltName: "2.5.29.17",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  clientAuth: "1.3.6.1.5.5.7.3.2",
};
/** digitalSignature and keyEncipherment: the bits 0 and 2 of a byte whose last five are unused. */
const LEAF_KEY_USAGE = Buffer.from([0x03, 0x02, 0x05, 0xa0]);
const SIGNATURE_OIDS: Readonly<Record<string, string>> = {
  "ECDSA SHA-256": "1.2.840.10045.4.3.2",
  "ECDSA SHA-384": "1.2.840.10045.4.3.3",
  "ECDSA SHA-512": "1.2.840.10045.4.3.4",
  "RSASSA-PKCS1-v1_5 SHA-256": "1.2.840.113549.1.1.11",
};

function leafExtensions({ issuer, subjectAltNames }: LeafInput): readonly Der[] {
  const { keyId } = issuerParts(issuer.certificate);
  return [
    extension(OID.keyUsage, LEAF_KEY_USAGE, true),
    extension(OID.extendedKeyUsage, sequence(objectIdentifier(OID.serverAuth), objectIdentifier(OID.clientAuth))),
    extension(OID.basicConstraints, sequence(), true),
    // An issuer without a key identifier gets no pointer, since any other would be wrong.
    ...(keyId === undefined ? [] : [extension(OID.authorityKeyIdentifier, sequence(implicit(0, keyId)))]),
    extension(OID.subjectAltName, generalNames(subjectAltNames), true),
  ];
}

function extension(id: string, value: Der, isCritical = false): Der {
  return sequence(objectIdentifier(id), ...(isCritical ? [truth(true)] : []), octetString(value));
}

function algorithmIdentifier({ name, hash }: SigningKey["algorithm"]): Der {
  const id = objectIdentifier(SIGNATURE_OIDS[`${name} ${hash}`] ?? "");
  return name === "ECDSA" ? sequence(id) : sequence(id, nothing());
}

/** With a callback, Node signs on the thread pool; ECDSA comes out in DER. */
function signature({ privateKey, algorithm }: SigningKey, body: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    signBytes(algorithm.hash, body, privateKey, (error, bytes) => (error ? reject(error) : resolve(bytes)));
  });
}

interface IssuerParts {
  /** The name as it is encoded, so that the two are equal byte by byte. */
  readonly subject: Der;
  readonly keyId: Buffer | undefined;
}

const partsOfIssuers = new WeakMap<X509Certificate, IssuerParts>();

/** Read once for each issuer. */
function issuerParts(certificate: X509Certificate): IssuerParts {
  const known = partsOfIssuers.get(certificate);
  if (known !== undefined) return known;
  const parsed = new x509.X509Certificate(certificate.raw);
  const keyId = parsed.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId;
  const parts = {
    subject: Buffer.from(parsed.subjectName.toArrayBuffer()),
    keyId: keyId === undefined ? undefined : Buffer.from(keyId, "hex"),
  };
  partsOfIssuers.set(certificate, parts);
  return parts;
}

/** URIs, IP addresses and DNS names as the value of the extension of alternative names. */
export function generalNames(names: readonly string[]): Der {
  return sequence(...names.map(generalName));
}

function generalName(name: string): Der {
  const version = isIP(name);
  if (version !== 0) return implicit(7, addressBytes(name, version));
  return implicitString(/^[a-z]+:\/\//.test(name) ? 6 : 2, name);
}

function addressBytes(address: string, version: number): Buffer {
  if (version === 4) return Buffer.from(address.split(".").map(Number));
  // The URL parser writes every form of an IPv6 address as groups of hexadecimal digits.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = (text = "") => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const [before, after] = [groups(head), groups(tail)];
  const all = [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
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

/** 127 random bits: positive in ASN.1, and the first byte is not zero. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}
