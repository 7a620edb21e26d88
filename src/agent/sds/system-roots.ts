import { existsSync } from "node:fs";

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
