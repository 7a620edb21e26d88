import { existsSync, readdirSync } from "node:fs";

/** Where Linux distributions keep what they trust; the first that exists is taken. */
const FILES: readonly string[] = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/tls/cacert.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
  "/usr/local/etc/ssl/cert.pem",
  "/etc/ssl/certs/ca-certificates",
];

/** The file with the machine's root certificates; undefined where there is none. */
export function systemRootsFile(): string | undefined {
  return FILES.find((file) => existsSync(file));
}

/** Folders of the same. */
const FOLDERS: readonly string[] = ["/etc/ssl/certs", "/etc/pki/tls/certs"];
/** As OpenSSL looks for a certificate: by a hash of its subject. */
const HASHED = /^[0-9a-f]{8}\.\d+$/;

/** A folder with the machine's root certificates in which one is found without reading the others; undefined where there is none. */
export function hashedRootsFolder(folders: readonly string[] = FOLDERS): string | undefined {
  return folders.find((folder) => existsSync(folder) && readdirSync(folder).some((name) => HASHED.test(name)));
}
