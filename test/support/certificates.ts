/** Self-signed certificates for tests, by openssl. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

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
