import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { SILENT } from "#lib/log/log.ts";
import { type Issuer, issueLeaf, issueRoot } from "#lib/pki/issue.ts";
import { TlsFiles } from "./tls-files.ts";

const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };

describe("TlsFiles", () => {
  const folder = mkdtempSync(join(tmpdir(), "tls-"));
  after(() => rmSync(folder, { recursive: true }));
  const certFile = join(folder, "cert");
  const keyFile = join(folder, "key");
  const caFile = join(folder, "ca");
  let root: Issuer;
  before(async () => {
    root = await issueRoot({ organization: "operator", keyKind: "P-256", ...validity });
  });
  beforeEach(() => write());

  async function write(): Promise<string> {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const certificate = await issueLeaf({ issuer: root, publicKey, subjectAltNames: ["istiod"], ...validity });
    writeFileSync(certFile, certificate);
    writeFileSync(keyFile, privateKey.export({ format: "pem", type: "pkcs8" }));
    writeFileSync(caFile, root.certificate.toString());
    return certificate;
  }

  const read = () => TlsFiles.read({ certFile, keyFile, caFile, log: SILENT, intervalMs: 10 });

  test("are read as they are", async () => {
    const certificates = await write();
    assert.equal((await read()).current().certificates, certificates);
  });

  test("are read again when they change", async (t) => {
    const files = await read();
    const stopping = new AbortController();
    t.after(() => stopping.abort());
    files.watch(stopping.signal);
    const told = new Promise((resolve) => files.subscribe(resolve));
    const certificates = await write();
    await told;
    assert.equal(files.current().certificates, certificates);
  });

  test("are refused with the flag and the file's name", async () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    writeFileSync(keyFile, privateKey.export({ format: "pem", type: "pkcs8" }));
    await assert.rejects(read(), { code: "TLS_FILES_INVALID", message: /\(--tlsKeyFile\) does not belong to/ });
    writeFileSync(keyFile, "garbage");
    await assert.rejects(read(), { code: "TLS_FILES_INVALID", message: /cannot parse/ });
    rmSync(certFile);
    await assert.rejects(read(), { code: "TLS_FILES_INVALID", message: `cannot read "${certFile}" (--tlsCertFile)` });
  });
});
