import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseDuration } from "@mizzen/go-text/duration";
import { certificateRequest } from "#lib/pki/csr.ts";
import { signedChain, testRoot } from "../../../test/support/fake-control-plane.ts";
import { joinPem, rotationDelayMs, workloadCertificate } from "./certificate.ts";
import { checkKeyOptions, generateKey } from "./key.ts";

const IDENTITY = "spiffe://cluster.local/ns/default/sa/httpbin";
const EC_KEY = { curve: "P-256", rsaBits: 2048, pkcs8: false } as const;
const tables = join(
  process.env.CONFORMANCE ?? join(import.meta.dirname, "../../../../shared/conformance"),
  "security/pkg/nodeagent/cache/tables",
);
const whereThere = { skip: existsSync(tables) ? false : `no ${tables}` };
const casesOf = (file: string) => JSON.parse(readFileSync(join(tables, file), "utf8")).cases;

test("rotationDelayMs() follows Istio's table", whereThere, () => {
  for (const { name, createdSecondsFromNow, expireSecondsFromNow, gracePeriodRatio, expected } of casesOf(
    "TestRotateTimeNoJitter.json",
  )) {
    const certificate = { createdAt: createdSecondsFromNow * 1000, expiresAt: expireSecondsFromNow * 1000 };
    const delay = rotationDelayMs(
      certificate,
      { gracePeriodRatio, gracePeriodRatioJitter: 0 },
      { now: 0, random: 0.3 },
    );
    assert.equal(delay, parseDuration(expected), name);
  }
});

test("rotationDelayMs() differs by the jitter and stays within the lifetime", () => {
  const certificate = { createdAt: 0, expiresAt: 1000 };
  const delay = (gracePeriodRatio: number, random: number) =>
    rotationDelayMs(certificate, { gracePeriodRatio, gracePeriodRatioJitter: 0.1 }, { now: 0, random });
  assert.deepEqual([delay(0.5, 0), delay(0.5, 0.5), delay(0.5, 1)].map(Math.round), [600, 500, 400]);
  assert.equal(delay(1, 1), 0);
  assert.equal(delay(0, 0), 1000);
});

test("joinPem() puts each certificate on a line of its own", whereThere, () => {
  for (const { name, certs, expected } of casesOf("TestConcatCerts.json")) assert.equal(joinPem(certs), expected, name);
});

const now = Date.now();

async function signed(identity = IDENTITY, requested = identity) {
  const [root, key] = [await testRoot(), await generateKey(EC_KEY)];
  const chain = await signedChain(certificateRequest({ identity: requested, ...key }), root, identity);
  return { root, key, chain };
}

test("workloadCertificate() takes the chain, the root as its last, and the expiry of the leaf", async () => {
  const { key, chain } = await signed();
  const certificate = workloadCertificate({ chain }, { key, identity: IDENTITY, now });
  assert.equal(certificate.chain, joinPem(chain));
  assert.equal(certificate.roots, chain[1]);
  assert.equal(certificate.privateKey, key.pem);
  assert.equal(certificate.createdAt, now);
  assert.ok(Math.abs(certificate.expiresAt - now - 3_600_000) < 60_000);
});

test("workloadCertificate() takes several roots, from the end of the chain or beside it", async () => {
  const { key, chain } = await signed();
  const [leaf = "", root = ""] = chain;
  const other = (await testRoot("other")).certificate.toString();
  const expected = { key, identity: IDENTITY, now };
  assert.equal(workloadCertificate({ chain: [leaf, other + root] }, expected).roots, other + root);
  assert.equal(workloadCertificate({ chain: [leaf], roots: [root, other] }, expected).roots, root + other);
  assert.equal(workloadCertificate({ chain: [leaf, root], roots: [] }, expected).roots, root);
});

test("workloadCertificate() takes an issuer that is in one text with the leaf, as signers of Kubernetes give it", async () => {
  const { key, chain } = await signed();
  const [leaf = "", issuer = ""] = chain;
  const root = (await testRoot("other")).certificate.toString();
  const expected = { key, identity: IDENTITY, now };
  const certificate = workloadCertificate({ chain: [leaf + issuer, root] }, expected);
  assert.equal(certificate.chain, leaf + issuer + root);
  assert.equal(certificate.roots, root);
  assert.throws(() => workloadCertificate({ chain: [leaf + issuer] }, expected), /1 certificates/);
});

test("workloadCertificate() refuses what does not belong together", async () => {
  const { key, chain } = await signed();
  const [leaf = "", root = ""] = chain;
  const expected = { key, identity: IDENTITY, now };
  const another = await generateKey(EC_KEY);
  assert.throws(() => workloadCertificate({ chain }, { ...expected, key: another }), {
    code: "CA_ANSWER_UNUSABLE",
    message: /for another key/,
  });
  const foreign = (await testRoot("other")).certificate.toString();
  assert.throws(() => workloadCertificate({ chain: [leaf, foreign] }, expected), /none of the certificates beside it/);
  assert.throws(() => workloadCertificate({ chain }, { ...expected, now: now + 7_200_000 }), /has ended at/);
  assert.throws(() => workloadCertificate({ chain: ["junk", "junk"] }, expected), /no certificate/);
  const half = root.replace("MII", "AAA");
  assert.throws(() => workloadCertificate({ chain: [leaf, half] }, expected), /no certificate/);
  assert.throws(() => workloadCertificate({ chain: [] }, expected), /0 certificates/);
  assert.throws(() => workloadCertificate({ chain: [leaf] }, expected), /1 certificates/);
});

test("workloadCertificate() refuses a certificate for another identity", async () => {
  for (const identity of [
    "spiffe://cluster.local/ns/default/sa/other",
    "spiffe://cluster.local/ns/other/sa/httpbin",
    "https://cluster.local/ns/default/sa/httpbin",
    "httpbin.default.svc",
  ]) {
    const { key, chain } = await signed(identity, IDENTITY);
    assert.throws(() => workloadCertificate({ chain }, { key, identity: IDENTITY, now }), {
      code: "CA_ANSWER_UNUSABLE",
      message: new RegExp(`instead of ${IDENTITY}`),
    });
  }
});

test("workloadCertificate() takes the trust domain that the CA has, as while a mesh changes its own", async () => {
  const { key, chain } = await signed("spiffe://mesh.example/ns/default/sa/httpbin", IDENTITY);
  for (const identity of [IDENTITY, "spiffe://former.example/ns/default/sa/httpbin"])
    workloadCertificate({ chain }, { key, identity, now });
});

test("workloadCertificate() leaves the identity to the CA where the environment has none", async () => {
  const { key, chain } = await signed();
  workloadCertificate({ chain }, { key, identity: "spiffe://cluster.local/ns//sa/", now });
});

test("checkKeyOptions() refuses RSA keys that no CA signs for, or that no TLS library reads", () => {
  assert.throws(() => checkKeyOptions({ curve: undefined, rsaBits: 1024, pkcs8: false }), {
    code: "IDENTITY_INVALID",
    message: /minimum required size of 2048 \(requested: 1024\)/,
  });
  assert.throws(() => checkKeyOptions({ curve: undefined, rsaBits: 1_000_000_000, pkcs8: false }), {
    code: "IDENTITY_INVALID",
    message: /^WORKLOAD_RSA_KEY_SIZE: .* maximum size of 16384 \(requested: 1000000000\)$/,
  });
  checkKeyOptions({ curve: undefined, rsaBits: 4096, pkcs8: false });
  checkKeyOptions({ curve: "P-256", rsaBits: 1024, pkcs8: false });
});

test("generateKey() makes keys of the asked kind and form", async () => {
  assert.match((await generateKey(EC_KEY)).pem, /^-----BEGIN EC PRIVATE KEY-----/);
  assert.match((await generateKey({ ...EC_KEY, pkcs8: true })).pem, /^-----BEGIN PRIVATE KEY-----/);
  const rsa = await generateKey({ curve: undefined, rsaBits: 2048, pkcs8: false });
  assert.match(rsa.pem, /^-----BEGIN RSA PRIVATE KEY-----/);
  assert.equal(rsa.privateKey.asymmetricKeyDetails?.modulusLength, 2048);
});
