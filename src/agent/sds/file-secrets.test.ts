import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { SecretSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import { createLogger } from "#lib/log.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import { eventually, signedChain, temporaryFolder, testRoot } from "../../../test/support/fake-control-plane.ts";
import { fileSecrets, parseFileSecret } from "./file-secrets.ts";
import { generateKey } from "./key.ts";
import type { EncodedSecret } from "./messages.ts";

type Context = { after(fn: () => void): void };

const table = join(
  process.env.CONFORMANCE ?? join(import.meta.dirname, "../../../../shared/conformance"),
  "pkg/security/tables/TestSdsCertificateConfigFromResourceName.json",
);

test("parseFileSecret() reads names as Istio's table says", { skip: existsSync(table) ? false : `no ${table}` }, () => {
  for (const { name, resource, output, key, root } of JSON.parse(readFileSync(table, "utf8")).cases) {
    const secret = parseFileSecret(resource);
    assert.equal(secret !== undefined && "roots" in secret, root, name);
    assert.equal(secret !== undefined && "key" in secret, key, name);
    if (secret !== undefined && "roots" in secret) assert.equal(secret.roots, output.CaCertificatePath);
  }
});

test("parseFileSecret() reads a pair, the system's roots, and nothing else", () => {
  assert.deepEqual(parseFileSecret("file-cert:/a.pem~/b.pem"), { certificate: "/a.pem", key: "/b.pem" });
  assert.deepEqual(parseFileSecret("file-root:system"), { roots: "/etc/ssl/certs/ca-certificates.crt" });
  assert.equal(parseFileSecret("file-cert:/a.pem"), undefined);
  assert.equal(parseFileSecret("default"), undefined);
});

function watch(t: Context, name: string) {
  const lines: string[] = [];
  const received: EncodedSecret[] = [];
  const source = fileSecrets(createLogger({ write: (line) => lines.push(line) }), 5);
  const stop = source.watch(name, (secret) => received.push(secret));
  t.after(stop);
  const roots = () =>
    received.map(({ bytes }) => {
      const { type } = fromBinary(SecretSchema, bytes);
      const specifier = type.case === "validationContext" ? type.value.trustedCa?.specifier : undefined;
      return specifier?.case === "inlineBytes" ? String(Buffer.from(specifier.value)) : "?";
    });
  return { lines, received, roots, stop };
}

const PEM = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;

test("fileSecrets() sends roots, and again when the file is written or replaced", async (t) => {
  const file = join(temporaryFolder(t), "roots.pem");
  writeFileSync(file, PEM("one"));
  const { roots } = watch(t, `file-root:${file}`);
  await eventually("the first", () => roots().length === 1);
  writeFileSync(`${file}.new`, PEM("two"));
  renameSync(`${file}.new`, file);
  await eventually("the second", () => roots().length === 2);
  assert.deepEqual(roots(), [PEM("one"), PEM("two")]);
});

test("fileSecrets() waits for a file that is not there yet, and says so", async (t) => {
  const file = join(temporaryFolder(t), "roots.pem");
  const { roots, lines } = watch(t, `file-root:${file}`);
  await eventually("a warning", () => lines.length > 0);
  assert.match(lines[0] ?? "", /Secret file-root:.* cannot be sent: ENOENT/);
  writeFileSync(file, PEM("late"));
  await eventually("the secret", () => roots().length === 1);
});

test("fileSecrets() sends a certificate with its key only when they fit", async (t) => {
  const folder = temporaryFolder(t);
  const [certificate, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const options = { curve: "P-256", rsaBits: 2048, pkcs8: false } as const;
  const [mine, other] = [await generateKey(options), await generateKey(options)];
  const chain = await signedChain(
    certificateRequest({ identity: "spiffe://x", ...mine }),
    await testRoot(),
    "spiffe://x",
  );
  writeFileSync(certificate, chain.join(""));
  writeFileSync(key, other.pem);
  const { received, lines } = watch(t, `file-cert:${certificate}~${key}`);
  await eventually("a warning", () => lines.length > 0);
  assert.match(lines[0] ?? "", /is not the key of/);
  writeFileSync(key, mine.pem);
  await eventually("the secret", () => received.length === 1);
  assert.equal(fromBinary(SecretSchema, received[0]?.bytes ?? new Uint8Array()).type.case, "tlsCertificate");
});

test("fileSecrets() refuses roots that are none, and is silent once nobody wants them", async (t) => {
  const file = join(temporaryFolder(t), "roots.pem");
  writeFileSync(file, "junk");
  const { received, lines, stop } = watch(t, `file-root:${file}`);
  await eventually("a warning", () => lines.length > 0);
  assert.match(lines[0] ?? "", /holds no certificate/);
  stop();
  rmSync(file);
  writeFileSync(file, PEM("late"));
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.deepEqual([received.length, lines.length], [0, 1]);
});
