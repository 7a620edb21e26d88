/** Certificates and keys in files that others write. Where one cannot be used the file is named, which OpenSSL does not do. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { MeshError } from "#lib/mesh-error.ts";

export interface PemFile {
  readonly file: string;
  readonly pem: string | Buffer;
}

/** The first certificate of a file. */
export function certificateIn({ file, pem }: PemFile): X509Certificate {
  return usable(`${file} holds no certificate`, () => new X509Certificate(pem));
}

/** Throws unless a file holds the key of a certificate. */
export function checkKey(key: PemFile, certificate: { readonly file: string; readonly leaf: X509Certificate }): void {
  const parsed = usable(`${key.file} holds no private key`, () => createPrivateKey(key.pem));
  if (certificate.leaf.checkPrivateKey(parsed)) return;
  throw new MeshError("SECRET_UNUSABLE", `${key.file} is not the key of ${certificate.file}`);
}

function usable<T>(problem: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw new MeshError("SECRET_UNUSABLE", problem, { cause });
  }
}
