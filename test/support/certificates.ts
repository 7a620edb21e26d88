/** Self-signed certificates for tests, by openssl, and lists of revoked ones. */
import "reflect-metadata";
import { execFileSync } from "node:child_process";
import { webcrypto } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { X509CrlGenerator } from "@peculiar/x509";
import { pem } from "#lib/pki/der.ts";
import { parsePem } from "#lib/pki/pem.ts";

export interface TestCertificate {
  readonly certificate: string;
  readonly key: string;
}

export function selfSigned(name: string): TestCertificate {
  const folder = mkdtempSync(join(tmpdir(), "certificate-"));
  try {
    const [key, certificate] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const content = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`, "-days", "2"];
    execFileSync("openssl", ["req", "-x509", ...kind, ...content, "-keyout", key, "-out", certificate], {
      stdio: "pipe",
    });
    return { key: readFileSync(key, "utf8"), certificate: readFileSync(certificate, "utf8") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const P256 = { name: "ECDSA", namedCurve: "P-256" };
const DAY_MS = 86_400_000;

/** A list of no certificates, signed by a P-256 key. */
export async function emptyRevocationList(keyPem: string): Promise<string> {
  const [key] = parsePem(keyPem);
  if (key === undefined) throw new Error("no PEM key");
  const signingKey = await webcrypto.subtle.importKey("pkcs8", key.der, P256, false, ["sign"]);
  const list = await X509CrlGenerator.create({
    issuer: "O=test",
    thisUpdate: new Date(),
    nextUpdate: new Date(Date.now() + DAY_MS),
    signingAlgorithm: { ...P256, hash: "SHA-256" },
    signingKey,
  });
  return pem("X509 CRL", new Uint8Array(list.rawData));
}
