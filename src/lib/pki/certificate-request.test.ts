import "reflect-metadata";
import assert from "node:assert/strict";
import { generateKeyPairSync, webcrypto } from "node:crypto";
import { before, describe, test } from "node:test";
import * as x509 from "@peculiar/x509";
import { requestedPublicKey } from "./certificate-request.ts";
import { pem } from "./der.ts";
import { parsePem } from "./pem.ts";

const P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

type Algorithm = webcrypto.EcKeyGenParams | webcrypto.RsaHashedKeyGenParams;

async function csr(algorithm: Algorithm = P256): Promise<string> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  if (!("privateKey" in keys)) throw new Error("no pair");
  const signingAlgorithm = { hash: "SHA-256", ...algorithm };
  const request = await x509.Pkcs10CertificateRequestGenerator.create({ name: "O=someone", keys, signingAlgorithm });
  return request.toString("pem");
}

function rsa(modulusLength: number, hash = "SHA-256"): webcrypto.RsaHashedKeyGenParams {
  return { name: "RSASSA-PKCS1-v1_5", modulusLength, publicExponent: new Uint8Array([1, 0, 1]), hash };
}

function reason(pattern: RegExp) {
  return { code: "CSR_INVALID", message: pattern };
}

describe("requestedPublicKey()", () => {
  let good = "";
  before(async () => {
    good = await csr();
  });

  test("takes the ECDSA key of a request", async () => {
    const key = await requestedPublicKey(good);
    assert.equal(key.asymmetricKeyDetails?.namedCurve, "prime256v1");
  });

  test("takes the RSA key of a request", async () => {
    const key = await requestedPublicKey(await csr(rsa(2048)));
    assert.equal(key.asymmetricKeyDetails?.modulusLength, 2048);
  });

  test("takes a P-384 key whose request is signed with SHA-384", async () => {
    const key = await requestedPublicKey(
      await csr({ name: "ECDSA", namedCurve: "P-384", hash: "SHA-384" } as Algorithm),
    );
    assert.equal(key.asymmetricKeyDetails?.namedCurve, "secp384r1");
  });

  test("accepts the older PEM label", async () => {
    await requestedPublicKey(good.replaceAll("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"));
  });

  test("refuses an RSA key below 2048 bits", async () => {
    await assert.rejects(requestedPublicKey(await csr(rsa(1024))), reason(/RSA key has 1024 bits/));
  });

  test("refuses a signature with SHA-1", async () => {
    await assert.rejects(requestedPublicKey(await csr(rsa(2048, "SHA-1"))), reason(/signature cannot be checked/));
  });

  test("refuses an Ed25519 key", async () => {
    const request = await csr({ name: "Ed25519" } as Algorithm);
    await assert.rejects(requestedPublicKey(request), reason(/type "ed25519"/));
  });

  test("refuses a request signed by another key", async () => {
    const der = new x509.Pkcs10CertificateRequest(good);
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const raw = Buffer.from(der.rawData);
    const own = Buffer.from(der.publicKey.rawData);
    publicKey.export({ format: "der", type: "spki" }).copy(raw, raw.indexOf(own));
    await assert.rejects(requestedPublicKey(pem("CERTIFICATE REQUEST", raw)), reason(/does not match its key/));
  });

  test("refuses garbage of every kind", async () => {
    const der = parsePem(good)[0]?.der ?? Buffer.alloc(0);
    const garbage = [
      "",
      "hello",
      good + good,
      good.replaceAll("CERTIFICATE REQUEST", "CERTIFICATE"),
      pem("CERTIFICATE REQUEST", Buffer.from("not DER at all")),
      pem("CERTIFICATE REQUEST", der.subarray(0, der.length / 2)),
      pem("CERTIFICATE REQUEST", Buffer.alloc(30_000, Buffer.from([0x30, 0x80]))),
    ];
    for (const text of garbage)
      await assert.rejects(requestedPublicKey(text), { code: "CSR_INVALID" }, text.slice(0, 80));
  });

  test("refuses a huge request before it reads it", async () => {
    const huge = pem("CERTIFICATE REQUEST", Buffer.alloc(1_000_000));
    await assert.rejects(requestedPublicKey(huge), reason(/at most 65536 are read/));
  });
});
