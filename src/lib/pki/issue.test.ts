import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createPublicKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Issuer, issueLeaf, issueRoot } from "./issue.ts";
import { formatSigningKey, type KeyKind, parseSigningKey } from "./signing-key.ts";

const DAY = 86_400_000;
const now = Date.now();
const validity = { notBefore: new Date(now - DAY), notAfter: new Date(now + DAY) };

function root(keyKind: KeyKind = "P-256"): Promise<Issuer> {
  return issueRoot({ organization: "cluster.local", keyKind, ...validity });
}

describe("issueLeaf()", () => {
  const folder = mkdtempSync(join(tmpdir(), "pki-"));
  after(() => rmSync(folder, { recursive: true }));
  let issuer: Issuer;
  let publicKey: KeyObject;
  before(async () => {
    issuer = await root();
    publicKey = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).publicKey;
  });

  function openssl(...args: readonly string[]): string {
    return execFileSync("openssl", args, { encoding: "utf8" });
  }

  test("makes what openssl accepts in strict mode, with Istio's usages and the names alone", async () => {
    const subjectAltNames = ["spiffe://cluster.local/ns/a/sa/b", "istiod.istio-system.svc", "127.0.0.1"];
    const leaf = await issueLeaf({ issuer, publicKey, subjectAltNames, ...validity });
    writeFileSync(join(folder, "root.pem"), issuer.certificate.toString());
    writeFileSync(join(folder, "leaf.pem"), leaf);
    assert.match(
      openssl("verify", "-x509_strict", "-CAfile", join(folder, "root.pem"), join(folder, "leaf.pem")),
      /leaf\.pem: OK/,
    );
    const text = openssl("x509", "-in", join(folder, "leaf.pem"), "-noout", "-text").replaceAll(/\s+/g, " ");
    for (const part of [
      "Issuer: O = cluster.local",
      "Subject: Subject Public Key Info",
      "X509v3 Key Usage: critical Digital Signature, Key Encipherment",
      "X509v3 Extended Key Usage: TLS Web Server Authentication, TLS Web Client Authentication",
      "X509v3 Basic Constraints: critical CA:FALSE",
      "X509v3 Subject Alternative Name: critical URI:spiffe://cluster.local/ns/a/sa/b, DNS:istiod.istio-system.svc, IP Address:127.0.0.1",
    ]) {
      assert.ok(text.includes(part), `${part} is missing in ${text}`);
    }
  });

  test("carries the key and the times it was given", async () => {
    const leaf = new X509Certificate(await issueLeaf({ issuer, publicKey, subjectAltNames: ["a.b"], ...validity }));
    assert.ok(leaf.publicKey.equals(publicKey));
    assert.equal(leaf.validToDate.getTime(), Math.floor((now + DAY) / 1000) * 1000);
    assert.equal(leaf.validFromDate.getTime(), Math.floor((now - DAY) / 1000) * 1000);
  });

  test("gives every certificate a serial number of its own", async () => {
    const input = { issuer, publicKey, subjectAltNames: ["a.b"], ...validity };
    const serials = await Promise.all(Array.from({ length: 8 }, () => issueLeaf(input)));
    assert.equal(new Set(serials.map((pem) => new X509Certificate(pem).serialNumber)).size, 8);
  });

  test("writes addresses of both families, and times after 2049", async () => {
    const subjectAltNames = ["10.0.0.255", "::1", "2001:db8::", "fe80::1:2:3", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8"];
    const notAfter = new Date(Date.UTC(2050, 0, 1));
    const leaf = new X509Certificate(await issueLeaf({ issuer, publicKey, subjectAltNames, ...validity, notAfter }));
    assert.deepEqual(
      leaf.subjectAltName?.split(", ").map((name) => name.toLowerCase()),
      [
        "ip address:10.0.0.255",
        "ip address:0:0:0:0:0:0:0:1",
        "ip address:2001:db8:0:0:0:0:0:0",
        "ip address:fe80:0:0:0:0:1:2:3",
        "ip address:0:0:0:0:0:ffff:102:304",
        "ip address:1:2:3:4:5:6:7:8",
      ],
    );
    assert.equal(leaf.validToDate.getTime(), notAfter.getTime());
  });

  for (const namedCurve of ["secp384r1", "secp521r1"]) {
    test(`signs with a root on ${namedCurve}`, async () => {
      const ec = generateKeyPairSync("ec", { namedCurve }).privateKey;
      const key = parseSigningKey(ec.export({ format: "pem", type: "pkcs8" }).toString());
      const leaf = await issueLeaf({
        issuer: { certificate: issuer.certificate, key },
        publicKey,
        subjectAltNames: ["a.b"],
        ...validity,
      });
      assert.ok(new X509Certificate(leaf).verify(createPublicKey(ec)));
    });
  }

  test("signs with an RSA root too", async () => {
    const rsa = await root({ rsaBits: 2048 });
    const leaf = await issueLeaf({ issuer: rsa, publicKey, subjectAltNames: ["a.b"], ...validity });
    assert.ok(new X509Certificate(leaf).verify(rsa.certificate.publicKey));
  });
});

test("issueRoot() makes a certificate authority that signs itself", async () => {
  const { certificate, key } = await root();
  assert.equal(certificate.ca, true);
  assert.equal(certificate.subject, "O=cluster.local");
  assert.ok(certificate.verify(certificate.publicKey));
  assert.ok(certificate.checkPrivateKey(key.privateKey));
});

test("formatSigningKey() and parseSigningKey() are a round trip", async () => {
  const { key } = await root();
  assert.ok(parseSigningKey(formatSigningKey(key)).privateKey.equals(key.privateKey));
});

test("parseSigningKey() reads PKCS#1 and SEC 1", () => {
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const ec = generateKeyPairSync("ec", { namedCurve: "secp384r1" }).privateKey;
  assert.equal(
    parseSigningKey(rsa.export({ format: "pem", type: "pkcs1" }).toString()).algorithm.name,
    "RSASSA-PKCS1-v1_5",
  );
  assert.deepEqual(parseSigningKey(ec.export({ format: "pem", type: "sec1" }).toString()).algorithm, {
    name: "ECDSA",
    namedCurve: "P-384",
    hash: "SHA-384",
  });
});

test("parseSigningKey() says what is wrong with a key", () => {
  const ed25519 = generateKeyPairSync("ed25519").privateKey;
  assert.throws(() => parseSigningKey("garbage"), { code: "KEY_INVALID", message: /not a PEM private key/ });
  assert.throws(() => parseSigningKey(ed25519.export({ format: "pem", type: "pkcs8" }).toString()), {
    code: "KEY_INVALID",
    message: /"ed25519"/,
  });
  const publicPem = createPublicKey(ed25519).export({ format: "pem", type: "spki" }).toString();
  assert.throws(() => parseSigningKey(publicPem), { code: "KEY_INVALID" });
});
