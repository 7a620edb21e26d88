import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseDuration } from "#lib/duration.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import { signedChain, testRoot } from "../../../test/support/fake-control-plane.ts";
import { joinPem, rotationDelayMs, workloadCertificate } from "./certificate.ts";
import { generateKey } from "./key.ts";

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

test("workloadCertificate() takes the chain, the root as its last, and the expiry of the leaf", async () => {
  const [root, key] = [await testRoot(), await generateKey(EC_KEY)];
  const chain = await signedChain(certificateRequest({ identity: IDENTITY, ...key }), root, IDENTITY);
  const certificate = workloadCertificate(chain, key, 5);
  assert.equal(certificate.chain, joinPem(chain));
  assert.equal(certificate.roots, chain[1]);
  assert.equal(certificate.privateKey, key.pem);
  assert.equal(certificate.createdAt, 5);
  assert.ok(Math.abs(certificate.expiresAt - Date.now() - 3_600_000) < 60_000);
});

test("workloadCertificate() refuses what does not belong together", async () => {
  const [root, key, other] = [await testRoot(), await generateKey(EC_KEY), await generateKey(EC_KEY)];
  const chain = await signedChain(certificateRequest({ identity: IDENTITY, ...other }), root, IDENTITY);
  assert.throws(() => workloadCertificate(chain, key, 0), { code: "CA_ANSWER_UNUSABLE", message: /for another key/ });
  assert.throws(() => workloadCertificate(["junk", "junk"], key, 0), /no certificate/);
  assert.throws(() => workloadCertificate([], key, 0), /0 certificates/);
  assert.throws(() => workloadCertificate(chain.slice(0, 1), key, 0), /1 certificates/);
});

test("generateKey() makes keys of the asked kind and form", async () => {
  assert.match((await generateKey(EC_KEY)).pem, /^-----BEGIN EC PRIVATE KEY-----/);
  assert.match((await generateKey({ ...EC_KEY, pkcs8: true })).pem, /^-----BEGIN PRIVATE KEY-----/);
  const rsa = await generateKey({ curve: undefined, rsaBits: 2048, pkcs8: false });
  assert.match(rsa.pem, /^-----BEGIN RSA PRIVATE KEY-----/);
  assert.equal(rsa.privateKey.asymmetricKeyDetails?.modulusLength, 2048);
});
